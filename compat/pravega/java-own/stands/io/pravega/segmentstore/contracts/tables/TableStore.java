package io.pravega.segmentstore.contracts.tables;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** What the same server has; tests that look into it from within cannot be run. */
public class TableStore implements AutoCloseable {
    public CompletableFuture<List<Object>> get(String segment, List<?> keys, Duration timeout) {
        throw new UnsupportedOperationException("the store is in another process");
    }

    @Override
    public void close() {
    }
}
