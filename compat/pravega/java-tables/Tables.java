import io.pravega.client.ClientConfig;
import io.pravega.client.KeyValueTableFactory;
import io.pravega.client.admin.KeyValueTableInfo;
import io.pravega.client.admin.KeyValueTableManager;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.tables.KeyValueTable;
import io.pravega.client.tables.KeyValueTableClientConfiguration;
import io.pravega.client.tables.KeyValueTableConfiguration;
import io.pravega.client.tables.Put;
import io.pravega.client.tables.TableEntry;
import io.pravega.client.tables.TableKey;
import io.pravega.common.util.RetriesExhaustedException;
import io.pravega.shared.security.auth.DefaultCredentials;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;

/**
 * Uses tables as one user: URI USER PASSWORD ACTION SCOPE TABLE …
 *
 * <pre>
 * create | delete | list   does so, and prints the answer
 * put KEY VALUE            sets an entry
 * get KEY                  prints its value
 * scenes                   plays all of Scenes and prints what comes of each step
 * many COUNT               plays the scene with many keys
 * </pre>
 *
 * A step that is refused prints the class of the exception. Without a USER none logs in.
 */
public final class Tables {
    static final int PRIMARY = 4;
    static final int SECONDARY = 2;

    public static void main(String[] given) throws Exception {
        ClientConfig.ClientConfigBuilder builder =
            ClientConfig.builder().controllerURI(URI.create(given[0]));
        if (!given[1].isEmpty()) {
            builder.credentials(new DefaultCredentials(given[2], given[1]));
        }
        Tables tables = new Tables(builder.build(), given[4]);
        String table = given[5];
        switch (given[3]) {
            case "create" -> tables.say("create", () -> tables.create(table, 2, PRIMARY, SECONDARY));
            case "delete" -> tables.say("delete", () -> tables.delete(table));
            case "list" -> tables.say("list", tables::list);
            case "put" -> tables.say("put", () -> tables.put(table, given[6], given[7]));
            case "get" -> tables.say("get", () -> tables.get(table, given[6]));
            case "scenes" -> new Scenes(tables).play();
            case "many" -> new Scenes(tables).many(Integer.parseInt(given[6]));
            default -> throw new IllegalArgumentException(given[3]);
        }
        System.exit(0);
    }

    final ClientConfig config;
    final String scope;
    final KeyValueTableFactory factory;
    final KeyValueTableManager manager;

    Tables(ClientConfig config, String scope) {
        this.config = config;
        this.scope = scope;
        factory = KeyValueTableFactory.withScope(scope, config);
        manager = KeyValueTableManager.create(config);
    }

    /** Print what comes of a step: its value, or the class of the exception. */
    void say(String step, Callable<?> work) {
        String text;
        try {
            text = String.valueOf(work.call());
        } catch (Throwable error) {
            Throwable cause = error;
            while (isWrapping(cause) && cause.getCause() != null) {
                cause = cause.getCause();
            }
            text = cause.getClass().getSimpleName();
            if (System.getenv("FAULTS") != null) {
                cause.printStackTrace();
            }
        }
        System.out.println(step + ": " + text);
    }

    private static boolean isWrapping(Throwable error) {
        return error instanceof ExecutionException || error instanceof CompletionException
            || error instanceof RetriesExhaustedException
            || error.getClass() == RuntimeException.class;
    }

    boolean createScope() {
        try (StreamManager streams = StreamManager.create(config)) {
            return streams.createScope(scope);
        }
    }

    boolean deleteScope(boolean recursive) throws Exception {
        try (StreamManager streams = StreamManager.create(config)) {
            return recursive ? streams.deleteScopeRecursive(scope) : streams.deleteScope(scope);
        }
    }

    boolean create(String table, int partitions, int primary, int secondary) {
        return manager.createKeyValueTable(scope, table, KeyValueTableConfiguration.builder()
            .partitionCount(partitions)
            .primaryKeyLength(primary)
            .secondaryKeyLength(secondary)
            .build());
    }

    boolean delete(String table) {
        return manager.deleteKeyValueTable(scope, table);
    }

    List<String> list() {
        List<String> found = new ArrayList<>();
        manager.listKeyValueTables(scope).forEachRemaining(
            (KeyValueTableInfo each) -> found.add(each.getScopedName()));
        Collections.sort(found);
        return found;
    }

    KeyValueTable open(String table) {
        return factory.forKeyValueTable(table, KeyValueTableClientConfiguration.builder()
            .retryAttempts(2)
            .initialBackoffMillis(10)
            .build());
    }

    /** Set an entry; KEY has a primary key of four letters and a secondary key of two. */
    boolean put(String table, String key, String value) throws Exception {
        try (KeyValueTable opened = open(table)) {
            return opened.update(new Put(key(key), bytes(value))).get() != null;
        }
    }

    String get(String table, String key) throws Exception {
        try (KeyValueTable opened = open(table)) {
            TableEntry entry = opened.get(key(key)).get();
            return entry == null ? "none" : text(entry.getValue());
        }
    }

    static TableKey key(String key) {
        return key.length() == PRIMARY
            ? new TableKey(bytes(key))
            : new TableKey(bytes(key.substring(0, PRIMARY)), bytes(key.substring(PRIMARY)));
    }

    static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.ISO_8859_1));
    }

    static String text(ByteBuffer data) {
        return StandardCharsets.ISO_8859_1.decode(data.duplicate()).toString();
    }
}
