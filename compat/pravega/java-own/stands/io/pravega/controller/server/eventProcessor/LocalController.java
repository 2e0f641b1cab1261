package io.pravega.controller.server.eventProcessor;

import io.pravega.client.ClientConfig;
import io.pravega.client.control.impl.ControllerImpl;
import io.pravega.client.control.impl.ControllerImplConfig;
import io.pravega.client.segment.impl.Segment;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.impl.StreamCutImpl;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;

/** The client's way to a controller, where Pravega's tests have one in their own process. */
public class LocalController extends ControllerImpl {
    public LocalController(int port) {
        super(
            ControllerImplConfig.builder()
                .clientConfig(ClientConfig.builder()
                    .controllerURI(URI.create("tcp://localhost:" + port)).build())
                .build(),
            Executors.newScheduledThreadPool(2, work -> {
                Thread thread = new Thread(work);
                thread.setDaemon(true);
                return thread;
            }));
    }

    /** Do nothing: tests close it, and go on with it. */
    @Override
    public void close() {
    }

    /** Truncate a stream at offsets by segments. */
    public CompletableFuture<Boolean> truncateStream(
            String scope, String stream, Map<Long, Long> offsets) {
        Map<Segment, Long> positions = new HashMap<>();
        offsets.forEach((id, offset) -> positions.put(new Segment(scope, stream, id), offset));
        return truncateStream(scope, stream, new StreamCutImpl(Stream.of(scope, stream), positions));
    }
}
