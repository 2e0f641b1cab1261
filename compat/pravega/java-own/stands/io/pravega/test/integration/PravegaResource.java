package io.pravega.test.integration;

import io.pravega.client.control.impl.Controller;
import io.pravega.segmentstore.contracts.StreamSegmentStore;
import io.pravega.segmentstore.server.host.handler.PravegaConnectionListener;
import io.pravega.segmentstore.server.store.ServiceBuilder;
import io.pravega.test.common.TestUtils;
import io.pravega.test.integration.utils.ControllerWrapper;
import java.net.URI;
import org.junit.rules.ExternalResource;

/** A server for the tests of a class. */
public class PravegaResource extends ExternalResource {
    private final int controllerPort = TestUtils.getAvailableListenPort();
    private final int servicePort = TestUtils.getAvailableListenPort();
    private PravegaConnectionListener server;
    private ControllerWrapper controller;

    @Override
    protected void before() {
        StreamSegmentStore store = ServiceBuilder.newInMemoryBuilder(null).createStreamSegmentService();
        server = new PravegaConnectionListener(servicePort, store);
        server.startListening();
        controller = new ControllerWrapper(controllerPort, servicePort);
    }

    @Override
    protected void after() {
        try {
            controller.close();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
        server.close();
    }

    public Controller getLocalController() {
        return controller.getController();
    }

    public URI getControllerURI() {
        return URI.create("tcp://localhost:" + controllerPort);
    }
}
