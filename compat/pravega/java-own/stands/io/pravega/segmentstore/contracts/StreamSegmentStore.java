package io.pravega.segmentstore.contracts;

import java.nio.file.Path;

/** The directory of a server. */
public class StreamSegmentStore implements AutoCloseable {
    public final Path data;

    public StreamSegmentStore(Path data) {
        this.data = data;
    }

    @Override
    public void close() {
    }
}
