import java.util.*;
import java.util.stream.*;

/** Burns CPU in interpreted and compiled code, in the collector and in the compilers. */
public class Busy {
    static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    public static void main(String[] arguments) {
        System.out.println("ready");
        for (;;) {
            fibonacci(18);
            List<String> words = IntStream.range(0, 2000).mapToObj(i -> "w" + i * 7919 % 1009)
                .sorted().collect(Collectors.toList());
            Map<String, Integer> lengths = new HashMap<>();
            for (String word : words) lengths.merge(word, word.length(), Integer::sum);
            System.identityHashCode(new int[1 << 16]);
        }
    }
}
