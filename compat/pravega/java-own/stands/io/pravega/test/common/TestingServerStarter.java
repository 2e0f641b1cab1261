package io.pravega.test.common;

import org.apache.curator.test.TestingServer;

/** Starts nothing: Hutch needs no ZooKeeper. */
public class TestingServerStarter {
    public TestingServer start() {
        return new TestingServer();
    }
}
