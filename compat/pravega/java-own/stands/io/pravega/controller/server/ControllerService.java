package io.pravega.controller.server;

import io.pravega.client.control.impl.Controller;
import java.util.concurrent.CompletableFuture;

/** Calls of Pravega's own service, as far as a client has them too. */
public class ControllerService {
    private final Controller controller;

    public ControllerService(Controller controller) {
        this.controller = controller;
    }

    public CompletableFuture<Boolean> createScope(String scope, long request) {
        return controller.createScope(scope);
    }

    public CompletableFuture<Boolean> deleteScope(String scope, long request) {
        return controller.deleteScope(scope);
    }

    public CompletableFuture<Boolean> sealStream(String scope, String stream, long request) {
        return controller.sealStream(scope, stream);
    }

    public CompletableFuture<Boolean> deleteStream(String scope, String stream, long request) {
        return controller.deleteStream(scope, stream);
    }
}
