import io.pravega.client.ByteStreamClientFactory;
import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.SynchronizerClientFactory;
import io.pravega.client.byteStream.ByteStreamReader;
import io.pravega.client.byteStream.ByteStreamWriter;
import io.pravega.client.state.InitialUpdate;
import io.pravega.client.state.Revision;
import io.pravega.client.state.Revisioned;
import io.pravega.client.state.StateSynchronizer;
import io.pravega.client.state.SynchronizerConfig;
import io.pravega.client.state.Update;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.Serializer;
import io.pravega.client.stream.impl.ByteBufferSerializer;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import io.pravega.shared.security.auth.DefaultCredentials;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;

/**
 * Acts as one user: URI USER PASSWORD ACTION SCOPE STREAM …
 *
 * <pre>
 * write                    writes each line of the input as an event, and prints it when it is stored
 * bytes write:TEXT | truncate:OFFSET | seal | read:COUNT …
 *                          does so to a stream of bytes, and prints what it reads
 * read GROUP COUNT         makes a group of readers of the default configuration in the scope `mine`,
 *                          and prints the size of each event that it reads, COUNT of them
 * synchronize ITEM …       adds items to a list in a StateSynchronizer, compacts it, and prints it
 * </pre>
 */
public final class Actions {
    public static void main(String[] given) throws Exception {
        ClientConfig config = ClientConfig.builder()
            .controllerURI(URI.create(given[0]))
            .credentials(new DefaultCredentials(given[2], given[1]))
            .build();
        String scope = given[4];
        String stream = given[5];
        List<String> rest = List.of(given).subList(6, given.length);
        switch (given[3]) {
            case "write" -> write(config, scope, stream);
            case "read" -> read(config, scope, stream, rest.get(0), Integer.parseInt(rest.get(1)));
            case "bytes" -> handleBytes(config, scope, stream, rest);
            case "synchronize" -> synchronize(config, scope, stream, rest);
            default -> throw new IllegalArgumentException(given[3]);
        }
        System.exit(0);
    }

    private static void write(ClientConfig config, String scope, String stream) throws Exception {
        EventWriterConfig defaults = EventWriterConfig.builder().build();
        try (EventStreamClientFactory factory = EventStreamClientFactory.withScope(scope, config);
             EventStreamWriter<String> writer =
                 factory.createEventWriter(stream, new UTF8StringSerializer(), defaults)) {
            Scanner input = new Scanner(System.in);
            while (input.hasNextLine()) {
                String event = input.nextLine();
                writer.writeEvent(event).get();
                System.out.println(event);
            }
        }
    }

    private static void read(
            ClientConfig config, String scope, String stream, String group, int count) {
        ReaderGroupConfig of = ReaderGroupConfig.builder().stream(scope + "/" + stream).build();
        try (ReaderGroupManager groups = ReaderGroupManager.withScope("mine", config);
             EventStreamClientFactory clients = EventStreamClientFactory.withScope("mine", config)) {
            groups.createReaderGroup(group, of);
            try (EventStreamReader<ByteBuffer> reader = clients.createReader(
                     "reader", group, new ByteBufferSerializer(), ReaderConfig.builder().build())) {
                System.out.println("reads");
                for (int found = 0; found < count;) {
                    ByteBuffer event = reader.readNextEvent(1_000).getEvent();
                    if (event != null) {
                        System.out.println(event.remaining());
                        found++;
                    }
                }
            }
        }
    }

    private static void handleBytes(
            ClientConfig config, String scope, String stream, List<String> actions) throws Exception {
        try (ByteStreamClientFactory factory = ByteStreamClientFactory.withScope(scope, config)) {
            for (String each : actions) {
                String[] action = each.split(":");
                if (action[0].equals("read")) {
                    ByteStreamReader reader = factory.createByteStreamReader(stream);
                    reader.seekToOffset(reader.fetchHeadOffset());
                    byte[] data = new byte[Integer.parseInt(action[1])];
                    System.out.println(new String(data, 0, reader.read(data)));
                    continue;
                }
                ByteStreamWriter writer = factory.createByteStreamWriter(stream);
                switch (action[0]) {
                    case "write" -> {
                        writer.write(action[1].getBytes());
                        writer.flush();
                    }
                    case "truncate" -> writer.truncateDataBefore(Long.parseLong(action[1]));
                    case "seal" -> writer.closeAndSeal();
                    default -> throw new IllegalArgumentException(each);
                }
            }
        }
    }

    private static void synchronize(
            ClientConfig config, String scope, String stream, List<String> items) {
        try (SynchronizerClientFactory factory = SynchronizerClientFactory.withScope(scope, config)) {
            StateSynchronizer<Items> state = factory.createStateSynchronizer(
                stream,
                new JavaObjects<Update<Items>>(),
                new JavaObjects<InitialUpdate<Items>>(),
                SynchronizerConfig.builder().build());
            state.initialize(new Begun(new ArrayList<>()));
            for (String item : items) {
                state.updateState((Items now, List<Update<Items>> updates) -> {
                    updates.add(new Added(item));
                });
            }
            state.compact(now -> new Begun(now.items));
            state.fetchUpdates();
            System.out.println(String.join(" ", state.getState().items));
        }
    }

    private static final class Items implements Revisioned {
        final String name;
        final Revision revision;
        final ArrayList<String> items;

        Items(String name, Revision revision, ArrayList<String> items) {
            this.name = name;
            this.revision = revision;
            this.items = items;
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

    private static final class Begun implements InitialUpdate<Items>, Serializable {
        final ArrayList<String> items;

        Begun(ArrayList<String> items) {
            this.items = items;
        }

        @Override
        public Items create(String name, Revision revision) {
            return new Items(name, revision, items);
        }
    }

    private static final class Added implements Update<Items>, Serializable {
        final String item;

        Added(String item) {
            this.item = item;
        }

        @Override
        public Items applyTo(Items before, Revision revision) {
            ArrayList<String> items = new ArrayList<>(before.items);
            items.add(item);
            return new Items(before.name, revision, items);
        }
    }

    private static final class JavaObjects<T> implements Serializer<T> {
        @Override
        public ByteBuffer serialize(T value) {
            try (ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                 ObjectOutputStream objects = new ObjectOutputStream(bytes)) {
                objects.writeObject(value);
                objects.flush();
                return ByteBuffer.wrap(bytes.toByteArray());
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        @SuppressWarnings("unchecked")
        public T deserialize(ByteBuffer data) {
            byte[] bytes = new byte[data.remaining()];
            data.get(bytes);
            try (ObjectInputStream objects = new ObjectInputStream(new ByteArrayInputStream(bytes))) {
                return (T) objects.readObject();
            } catch (IOException | ClassNotFoundException error) {
                throw new IllegalStateException(error);
            }
        }
    }
}
