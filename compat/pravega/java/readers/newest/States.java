import io.pravega.client.SynchronizerClientFactory;
import io.pravega.client.state.InitialUpdate;
import io.pravega.client.state.Revision;
import io.pravega.client.state.Revisioned;
import io.pravega.client.state.RevisionedStreamClient;
import io.pravega.client.state.StateSynchronizer;
import io.pravega.client.state.SynchronizerConfig;
import io.pravega.client.state.Update;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.Serializer;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/** What several clients agree on: streams of revisions, and state that is made of them. */
final class States {
    static void add(Map<String, Run.Scenario> all) {
        all.put("revisions", States::revise);
        all.put("revisions-truncated", States::truncate);
        all.put("synchronizer", States::synchronize);
        all.put("synchronizer-settings", States::set);
    }

    private static SynchronizerClientFactory clients(Stage stage) {
        return stage.keep(SynchronizerClientFactory.withScope(stage.scope, stage.config));
    }

    private static SynchronizerConfig config() {
        return SynchronizerConfig.builder().readBufferSize(256 * 1024).build();
    }

    private static RevisionedStreamClient<String> revisioned(Stage stage) {
        stage.create("revisions", 1);
        return stage.keep(
            clients(stage).createRevisionedStreamClient("revisions", Stage.TEXT, config()));
    }

    private static List<String> texts(Iterator<Map.Entry<Revision, String>> found) {
        List<String> texts = new ArrayList<>();
        found.forEachRemaining(each -> texts.add(each.getValue()));
        return texts;
    }

    private static String place(Revision revision) {
        return revision == null ? "none" : revision.toString().replaceAll("^.*?:", "");
    }

    private static void revise(Stage stage) {
        RevisionedStreamClient<String> client = revisioned(stage);
        Revision first = client.fetchLatestRevision();
        stage.say("first", place(first));
        stage.say("oldest", place(client.fetchOldestRevision()));
        Revision second = client.writeConditionally(first, "one");
        stage.say("second", place(second));
        stage.say("too late", place(client.writeConditionally(first, "lost")));
        client.writeUnconditionally("two");
        stage.say("all", texts(client.readFrom(first)));
        stage.say("later", texts(client.readFrom(second)));
        stage.say("between", texts(client.readRange(first, second)));
        stage.say("as text", place(Revision.fromString(second.toString())));
        stage.say("no mark", place(client.getMark()));
        stage.say("marked", client.compareAndSetMark(null, second));
        stage.say("marked again", client.compareAndSetMark(null, first));
        stage.say("moved", client.compareAndSetMark(second, first));
        stage.say("mark", place(client.getMark()));
        stage.say("taken away", client.compareAndSetMark(first, null));
        stage.say("no mark then", place(client.getMark()));
    }

    private static void truncate(Stage stage) {
        RevisionedStreamClient<String> client = revisioned(stage);
        Revision first = client.fetchLatestRevision();
        client.writeUnconditionally("one");
        Revision second = client.fetchLatestRevision();
        client.writeUnconditionally("two");
        client.truncateToRevision(second);
        stage.say("oldest", place(client.fetchOldestRevision()));
        stage.tell("from what has gone", () -> texts(client.readFrom(first)));
        stage.say("the rest", texts(client.readFrom(second)));
        stage.tell("truncate back", () -> {
            client.truncateToRevision(first);
            return place(client.fetchOldestRevision());
        });
    }

    private static void synchronize(Stage stage) {
        stage.create("state", 1);
        StateSynchronizer<Sum> one = synchronizer(stage);
        StateSynchronizer<Sum> two = synchronizer(stage);
        one.initialize(new Begun(10));
        two.initialize(new Begun(99));
        two.fetchUpdates();
        stage.say("begun once", two.getState().value);
        one.updateState((Sum state, List<Update<Sum>> updates) -> {
            updates.add(new Added(state.value));
        });
        stage.say("doubled", one.getState().value);
        int before = two.updateState((Sum state, List<Update<Sum>> updates) -> {
            updates.add(new Added(5));
            return state.value;
        });
        stage.say("saw what the other did", before);
        one.updateStateUnconditionally(new Added(1));
        one.updateStateUnconditionally(List.of(new Added(1), new Added(1)));
        two.fetchUpdates();
        stage.say("sum", two.getState().value);
        stage.say("name", two.getState().getScopedStreamName());
        stage.say("revision", two.getState().getRevision().compareTo(one.getState().getRevision()));
        stage.say("bytes", two.bytesWrittenSinceCompaction());
        two.compact(state -> new Begun(state.value));
        stage.say("bytes then", two.bytesWrittenSinceCompaction());
        StateSynchronizer<Sum> three = synchronizer(stage);
        three.fetchUpdates();
        stage.say("of a later client", three.getState().value);
        three.close();
    }

    private static StateSynchronizer<Sum> synchronizer(Stage stage) {
        return stage.keep(clients(stage).createStateSynchronizer(
            "state", new Numbers<Added>(Added::new), new Numbers<Begun>(Begun::new), config()));
    }

    private static void set(Stage stage) throws Exception {
        SynchronizerConfig config = SynchronizerConfig.builder()
            .eventWriterConfig(EventWriterConfig.builder().retryAttempts(3).build())
            .readBufferSize(1_000)
            .build();
        SynchronizerConfig read = SynchronizerConfig.fromBytes(config.toBytes());
        stage.say("buffer", read.getReadBufferSize());
        stage.say("retries", read.getEventWriterConfig().getRetryAttempts());
        read.setReadBufferSize(2_000);
        read.setEventWriterConfig(EventWriterConfig.builder().retryAttempts(4).build());
        stage.say("changed", read.getReadBufferSize() + " " + read.getEventWriterConfig().getRetryAttempts());
    }

    /** A sum, as of a revision. */
    private static final class Sum implements Revisioned {
        final String name;
        final Revision revision;
        final int value;

        Sum(String name, Revision revision, int value) {
            this.name = name;
            this.revision = revision;
            this.value = value;
        }

        @Override
        public String getScopedStreamName() {
            return name;
        }

        @Override
        public Revision getRevision() {
            return revision;
        }
    }

    /** Something that has a number. */
    private interface Numbered {
        int number();
    }

    private static final class Begun implements InitialUpdate<Sum>, Numbered {
        final int number;

        Begun(int number) {
            this.number = number;
        }

        @Override
        public int number() {
            return number;
        }

        @Override
        public Sum create(String name, Revision revision) {
            return new Sum(name, revision, number);
        }
    }

    private static final class Added implements Update<Sum>, Numbered {
        final int number;

        Added(int number) {
            this.number = number;
        }

        @Override
        public int number() {
            return number;
        }

        @Override
        public Sum applyTo(Sum before, Revision revision) {
            return new Sum(before.name, revision, before.value + number);
        }
    }

    /** What has a number, as the number's text. */
    private static final class Numbers<T extends Numbered> implements Serializer<T> {
        private final java.util.function.IntFunction<T> make;

        Numbers(java.util.function.IntFunction<T> make) {
            this.make = make;
        }

        @Override
        public ByteBuffer serialize(T value) {
            return ByteBuffer.wrap(String.valueOf(value.number()).getBytes());
        }

        @Override
        public T deserialize(ByteBuffer data) {
            return make.apply(Integer.parseInt(StandardCharsets.UTF_8.decode(data).toString()));
        }
    }
}
