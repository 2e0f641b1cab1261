package org.apache.curator.test;

/** No ZooKeeper. */
public class TestingServer implements AutoCloseable {
    public String getConnectString() {
        return "";
    }

    public void start() {
    }

    public void stop() {
    }

    @Override
    public void close() {
    }
}
