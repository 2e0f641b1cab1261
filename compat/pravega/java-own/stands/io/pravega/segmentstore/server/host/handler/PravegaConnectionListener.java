package io.pravega.segmentstore.server.host.handler;

import hutch.Server;
import io.pravega.segmentstore.contracts.StreamSegmentStore;

/** Hutch at the port that a test gives to Pravega's listener. */
public class PravegaConnectionListener implements AutoCloseable {
    private StreamSegmentStore store;
    private int port;
    private Server server;

    public PravegaConnectionListener(Object... given) {
        for (Object each : given) {
            if (each instanceof Integer number && port == 0) {
                port = number;
            } else if (each instanceof StreamSegmentStore found) {
                store = found;
            }
        }
    }

    public void startListening() {
        server = new Server(store.data, port);
    }

    @Override
    public void close() {
        if (server != null) {
            server.close();
            server = null;
        }
    }
}
