package io.pravega.segmentstore.server.store;

import io.pravega.segmentstore.contracts.StreamSegmentStore;
import io.pravega.segmentstore.contracts.tables.TableStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;

/** Makes the directory of a server. */
public class ServiceBuilder implements AutoCloseable {
    private static final ScheduledExecutorService EXECUTOR = Executors.newScheduledThreadPool(1, work -> {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    });

    private final Path data;

    private ServiceBuilder() {
        try {
            data = Files.createTempDirectory(Path.of(System.getProperty("folder")), "data")
                .resolve("store");
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    public static ServiceBuilder newInMemoryBuilder(ServiceBuilderConfig config) {
        return new ServiceBuilder();
    }

    public void initialize() {
    }

    public StreamSegmentStore createStreamSegmentService() {
        return new StreamSegmentStore(data);
    }

    public TableStore createTableStoreService() {
        return new TableStore();
    }

    public ScheduledExecutorService getLowPriorityExecutor() {
        return EXECUTOR;
    }

    @Override
    public void close() {
    }
}
