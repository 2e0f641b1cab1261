import java.net.URI;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Runs scenarios, some at once, and prints what each finds: URI SUFFIX [SCENARIO …]
 *
 * <pre>
 * SCENARIO KEY=VALUE         a value
 * SCENARIO end=ok            it is done; or end=hung, or end=fault and the exception's classes
 * SCENARIO seconds=1.2       how long it took, which differs from run to run
 * </pre>
 *
 * Each scenario has a scope of its own, which is called like it, with the suffix. All are run if none
 * is named. `list` instead of a URI prints their names.
 */
public final class Run {
    static final int LIMIT_S = Integer.getInteger("limit", 90);
    static final int AT_ONCE = Integer.getInteger("together", 6);

    /** What a scenario does on its stage. */
    interface Scenario {
        void play(Stage stage) throws Exception;
    }

    public static void main(String[] given) throws Exception {
        Map<String, Scenario> all = scenarios();
        if (given[0].equals("list")) {
            all.keySet().forEach(System.out::println);
            return;
        }
        URI uri = URI.create(given[0]);
        List<String> names = new ArrayList<>(List.of(given).subList(2, given.length));
        if (names.isEmpty()) {
            names.addAll(all.keySet());
        }
        ExecutorService keepers = Executors.newCachedThreadPool();
        Semaphore room = new Semaphore(AT_ONCE);
        for (String name : names) {
            room.acquire();
            keepers.submit(() -> {
                try {
                    keep(new Stage(uri, name, given[1]), all.get(name));
                } finally {
                    room.release();
                }
            });
        }
        room.acquire(AT_ONCE);
        System.out.flush();
        Runtime.getRuntime().halt(0);  // a client that hangs has threads that end never
    }

    private static Map<String, Scenario> scenarios() throws Exception {
        Map<String, Scenario> all = new LinkedHashMap<>();
        Reading.add(all);
        Checkpoints.add(all);
        Cuts.add(all);
        Members.add(all);
        Groups.add(all);
        Changes.add(all);
        try {
            Class.forName("Newest").getDeclaredMethod("add", Map.class).invoke(null, all);
        } catch (ClassNotFoundException error) {
            return all;  // built with the oldest client
        }
        return all;
    }

    /** Play a scenario, with a time limit. */
    private static void keep(Stage stage, Scenario scenario) {
        ExecutorService player = Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task, stage.name);
            thread.setDaemon(true);
            return thread;
        });
        long begun = System.nanoTime();
        Future<?> played = player.submit(() -> {
            scenario.play(stage);
            return null;
        });
        try {
            played.get(LIMIT_S, TimeUnit.SECONDS);
            stage.end("ok");
        } catch (TimeoutException error) {
            stage.end("hung");
            trace(stage.name);
            played.cancel(true);
        } catch (ExecutionException error) {
            stage.end("fault " + Stage.classes(error.getCause()));
            error.getCause().printStackTrace();
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
        double seconds = (System.nanoTime() - begun) / 1e9;
        System.out.printf("%s seconds=%.1f%n", stage.name, seconds);
        player.shutdown();
        stage.closeAll();
    }

    private static void trace(String name) {
        Thread.getAllStackTraces().forEach((thread, frames) -> {
            if (thread.getName().equals(name)) {
                System.err.println("the thread of " + name + " is at");
                for (StackTraceElement frame : frames) {
                    System.err.println("    " + frame);
                }
            }
        });
    }
}
