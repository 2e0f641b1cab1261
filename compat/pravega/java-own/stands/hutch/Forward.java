package hutch;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** A port that leads to the controller of a server: tests choose the controller's port by themselves. */
public final class Forward implements AutoCloseable {
    private final ServerSocket listening;
    private final int servicePort;

    /** Listen at once; the server of the segments' port may come later. */
    public Forward(int port, int servicePort) {
        this.servicePort = servicePort;
        try {
            listening = new ServerSocket(port, 50, InetAddress.getByName("127.0.0.1"));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
        begin(this::take);
    }

    private interface Work {
        void run() throws IOException;
    }

    private static void begin(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException error) {
                return;  // one of the ends has gone
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private void take() throws IOException {
        while (true) {
            Socket near = listening.accept();
            try {
                Socket far = new Socket("127.0.0.1", Server.controllerOf(servicePort));
                begin(() -> copy(near, far));
                begin(() -> copy(far, near));
            } catch (IOException error) {
                near.close();
            }
        }
    }

    private static void copy(Socket from, Socket to) throws IOException {
        try (from; to) {
            from.getInputStream().transferTo(to.getOutputStream());
        }
    }

    @Override
    public void close() throws IOException {
        listening.close();
    }
}
