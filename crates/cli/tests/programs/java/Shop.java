import io.pyroscope.labels.v2.LabelsSet;
import io.pyroscope.labels.v2.Pyroscope;

/**
 * A shop that Pyroscope's agent for Java profiles: one method burns CPU time under two labels, one
 * allocates, one waits for a lock that another thread holds.
 */
public final class Shop {
    private static final Object stock = new Object();
    private static volatile byte[] basket;
    private static volatile long sum;

    static void priceEverything(long rounds) {
        long total = 1;
        for (long round = 0; round < rounds; round++) {
            total = total * 6364136223846793005L + round;
        }
        sum = total;
    }

    static void fillBasket() {
        for (int count = 0; count < 20; count++) {
            basket = new byte[256 << 10];
        }
    }

    static void takeFromStock() {
        synchronized (stock) {
            try {
                Thread.sleep(20);
            } catch (InterruptedException interruption) {
                Thread.currentThread().interrupt();
            }
        }
    }

    public static void main(String[] arguments) {
        for (int number = 0; number < 2; number++) {
            Thread clerk = new Thread(() -> {
                while (true) {
                    takeFromStock();
                }
            });
            clerk.setDaemon(true);
            clerk.start();
        }
        while (true) {
            Pyroscope.LabelsWrapper.run(new LabelsSet("aisle", "bread"), () -> priceEverything(60_000_000));
            Pyroscope.LabelsWrapper.run(new LabelsSet("aisle", "milk"), () -> priceEverything(20_000_000));
            fillBasket();
        }
    }
}
