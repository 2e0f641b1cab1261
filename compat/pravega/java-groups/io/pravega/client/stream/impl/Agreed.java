package io.pravega.client.stream.impl;

import io.pravega.client.SynchronizerClientFactory;
import io.pravega.client.admin.impl.ReaderGroupManagerImpl;
import io.pravega.client.segment.impl.Segment;
import io.pravega.client.state.StateSynchronizer;
import io.pravega.client.state.SynchronizerConfig;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** What the readers of a group have agreed, which only this package of the client can see. */
public final class Agreed implements AutoCloseable {
    private final StateSynchronizer<ReaderGroupState> state;

    public Agreed(SynchronizerClientFactory clients, String group) {
        state = clients.createStateSynchronizer(
            "_RG" + group,
            new ReaderGroupManagerImpl.ReaderGroupStateUpdatesSerializer(),
            new ReaderGroupManagerImpl.ReaderGroupStateInitSerializer(),
            SynchronizerConfig.builder().build());
        state.fetchUpdates();
    }

    /** Write the state down whole, as a reader of the group does after 512 KiB of changes. */
    public void compact() {
        state.compact(ReaderGroupState.CompactReaderGroupState::new);
    }

    /** Return where the last checkpoint was, what the group has reached, and where it ends. */
    public String words() {
        ReaderGroupState now = state.getState();
        Map<Segment, Long> checkpoint = new TreeMap<>();
        now.getPositionsForLastCompletedCheckpoint()
            .ifPresent(streams -> streams.values().forEach(checkpoint::putAll));
        Map<Segment, Long> positions = new TreeMap<>();
        now.getPositions().values().forEach(stream -> stream.forEach(
            (segment, offset) -> positions.put(segment.getSegment(), offset)));
        return "checkpoint=" + words(checkpoint) + " positions=" + words(positions)
            + " ends=" + words(new TreeMap<>(now.getEndSegments()));
    }

    private static String words(Map<Segment, Long> offsets) {
        return offsets.entrySet().stream()
            .map(each -> each.getKey().getScopedName() + ":" + each.getValue())
            .collect(Collectors.joining(","));
    }

    @Override
    public void close() {
        state.close();
    }
}
