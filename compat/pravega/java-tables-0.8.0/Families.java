import io.pravega.client.ClientConfig;
import io.pravega.client.KeyValueTableFactory;
import io.pravega.client.admin.KeyValueTableManager;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import io.pravega.client.tables.KeyValueTable;
import io.pravega.client.tables.KeyValueTableClientConfiguration;
import io.pravega.client.tables.KeyValueTableConfiguration;
import io.pravega.client.tables.TableEntry;
import io.pravega.client.tables.Version;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;

/**
 * Uses tables as clients of before 0.10 have them: URI SCOPE. Keys have any length, and families.
 *
 * It prints what comes of each step, or the class of the exception.
 */
public final class Families {
    public static void main(String[] given) throws Exception {
        ClientConfig config = ClientConfig.builder().controllerURI(URI.create(given[0])).build();
        String scope = given[1];
        StreamManager.create(config).createScope(scope);
        KeyValueTableManager manager = KeyValueTableManager.create(config);
        KeyValueTableConfiguration parts =
            KeyValueTableConfiguration.builder().partitionCount(3).build();
        say("create", () -> manager.createKeyValueTable(scope, "t", parts));
        say("create again", () -> manager.createKeyValueTable(scope, "t", parts));
        say("list", () -> manager.listKeyValueTables(scope).next().getScopedName());
        use(KeyValueTableFactory.withScope(scope, config).forKeyValueTable("t",
            new UTF8StringSerializer(), new UTF8StringSerializer(),
            KeyValueTableClientConfiguration.builder().build()));
        say("delete", () -> manager.deleteKeyValueTable(scope, "t"));
        say("delete again", () -> manager.deleteKeyValueTable(scope, "t"));
        System.exit(0);
    }

    private static void use(KeyValueTable<String, String> table) throws Exception {
        say("get none", () -> table.get(null, "a").get());
        Version first = table.put(null, "a", "1").get();
        say("get", () -> table.get(null, "a").get().getValue());
        say("put if there is none", () -> table.putIfAbsent(null, "a", "2").get());
        Version second = table.replace(null, "a", "a much longer value", first).get();
        say("replace the old one", () -> table.replace(null, "a", "3", first).get());
        say("replace a missing one", () -> {
            Version gone = table.put("family", "b", "1").get();
            table.remove("family", "b").get();
            return table.replace("family", "b", "2", gone).get();
        });
        say("the same key of a family", () -> table.get("family", "a").get());
        for (String family : List.of("family", "other", "family2", "f")) {
            Map<String, String> entries = new TreeMap<>();
            for (int number = 0; number < 50; number++) {
                entries.put("key " + number, family + " " + number);
            }
            table.putAll(family, entries.entrySet()).get();
        }
        for (String family : List.of("family", "other", "family2", "f", "none")) {
            say("keys of " + family, () -> keys(table, family, 7).size());
        }
        say("entries", () -> {
            int right = 0;
            var items = table.entryIterator("family", 7, null);
            for (var item = items.getNext().get(); item != null; item = items.getNext().get()) {
                for (TableEntry<String, String> each : item.getItems()) {
                    String number = each.getKey().getKey().substring("key ".length());
                    right += each.getValue().equals("family " + number) ? 1 : 0;
                }
            }
            return right;
        });
        say("get all", () -> table.getAll("other", List.of("key 1", "key 99", "key 2")).get()
            .stream().map(each -> each == null ? "none" : each.getValue()).toList());
        say("map", () -> table.getMapFor("f").size());
        say("clear", () -> {
            table.getMapFor("family").clear();
            return keys(table, "family", 7);
        });
        say("others are left", () -> keys(table, "other", 7).size() + keys(table, "f", 7).size());
        say("remove", () -> table.remove(null, "a", second).get());
        say("get what is gone", () -> table.get(null, "a").get());
    }

    private static List<String> keys(KeyValueTable<String, String> table, String family, int size)
            throws Exception {
        List<String> found = new ArrayList<>();
        var items = table.keyIterator(family, size, null);
        for (var item = items.getNext().get(); item != null; item = items.getNext().get()) {
            item.getItems().forEach(each -> found.add(each.getKey()));
        }
        return found;
    }

    private static void say(String step, Callable<?> work) {
        String text;
        try {
            text = String.valueOf(work.call());
        } catch (Throwable error) {
            Throwable cause = error;
            while ((cause instanceof ExecutionException || cause instanceof CompletionException)
                    && cause.getCause() != null) {
                cause = cause.getCause();
            }
            text = cause.getClass().getSimpleName();
        }
        System.out.println(step + ": " + text);
    }
}
