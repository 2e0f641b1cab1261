package hutch;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A process of `hutch store serve`, in place of the servers that Pravega's tests start in their own.
 *
 * The system property `hutch` is the command, its words parted by spaces.
 */
public final class Server implements AutoCloseable {
    private static final Map<Integer, Server> BY_PORT = new ConcurrentHashMap<>();
    private static final Pattern CONTROLLER = Pattern.compile("controller=\\S+:(\\d+)");

    private final Process process;
    private final int port;
    private final int controllerPort;

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() ->
            BY_PORT.values().forEach(each -> each.process.destroyForcibly())));
    }

    /** Start one on a directory; its segments are at the port. */
    public Server(Path data, int port) {
        this.port = port;
        List<String> command = new ArrayList<>(List.of(System.getProperty("hutch").split(" ")));
        command.addAll(List.of("store", "serve", "--data", data.toString(), "--port",
            String.valueOf(port), "--controller-port", "0", "--durability", "os"));
        try {
            process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.appendTo(new File(data + ".log")))
                .start();
            String ready = new BufferedReader(
                new InputStreamReader(process.getInputStream())).readLine();
            Matcher found = CONTROLLER.matcher(String.valueOf(ready));
            if (!found.find()) {
                throw new IllegalStateException("Hutch did not start: " + ready);
            }
            controllerPort = Integer.parseInt(found.group(1));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        BY_PORT.put(port, this);
    }

    /** Return the port of the controller of the server that has a port for segments. */
    static int controllerOf(int port) throws IOException {
        Server server = BY_PORT.get(port);
        if (server == null) {
            throw new IOException("no server at " + port);
        }
        return server.controllerPort;
    }

    @Override
    public void close() {
        BY_PORT.remove(port, this);
        process.destroy();
        try {
            process.waitFor();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
