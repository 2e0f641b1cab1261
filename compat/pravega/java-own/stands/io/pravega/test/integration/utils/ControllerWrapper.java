package io.pravega.test.integration.utils;

import hutch.Forward;
import io.pravega.client.control.impl.Controller;
import io.pravega.controller.server.ControllerService;
import io.pravega.controller.server.eventProcessor.LocalController;
import io.pravega.test.common.TestUtils;
import java.util.ArrayList;
import java.util.List;

/** The controller of the server at the segments' port, at the port that a test gives to it. */
public class ControllerWrapper implements AutoCloseable {
    private final int port;
    private final Forward forward;

    public ControllerWrapper(Object... given) {
        List<Integer> ports = new ArrayList<>();
        for (Object each : given) {
            if (each instanceof Integer number) {
                ports.add(number);
            }
        }
        port = ports.size() > 1 ? ports.get(0) : TestUtils.getAvailableListenPort();
        forward = new Forward(port, ports.size() > 1 ? ports.get(1) : ports.get(0));
    }

    public void awaitRunning() {
    }

    public Controller getController() {
        return new LocalController(port);
    }

    public ControllerService getControllerService() {
        return new ControllerService(getController());
    }

    public void awaitTerminated() {
    }

    @Override
    public void close() throws Exception {
        forward.close();
    }
}
