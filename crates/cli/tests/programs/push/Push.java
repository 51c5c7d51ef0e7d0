import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

/** Posts so many lines of folded stacks with an encoding, and prints the status and the body of the answer. */
public class Push {
    public static void main(String[] arguments) throws Exception {
        var body = BodyPublishers.ofString("main;work 1\n".repeat(Integer.parseInt(arguments[1])));
        var request = HttpRequest.newBuilder(URI.create(arguments[0]))
                .version(HttpClient.Version.HTTP_1_1)
                .header("Content-Encoding", arguments[2])
                .POST(body)
                .build();
        var answer = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
        System.out.println(answer.statusCode() + " " + answer.body());
    }
}
