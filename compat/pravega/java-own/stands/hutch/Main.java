package hutch;

import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs the tests of some classes, and prints a line for each: passed, failed or skipped, and its name. */
public final class Main extends RunListener {
    private boolean hasFailed;

    public static void main(String[] classes) throws Exception {
        JUnitCore core = new JUnitCore();
        core.addListener(new Main());
        for (String each : classes) {
            core.run(Class.forName(each));
        }
        System.exit(0);
    }

    private static String name(Description test) {
        String of = test.getClassName().replaceAll(".*\\.", "");
        return test.getMethodName() == null ? of : of + "." + test.getMethodName();
    }

    @Override
    public void testStarted(Description test) {
        hasFailed = false;
    }

    @Override
    public void testFailure(Failure failure) {
        hasFailed = true;
        String why = String.valueOf(failure.getException()).replace('\n', ' ');
        System.out.println("failed " + name(failure.getDescription()) + " " + why);
        failure.getException().printStackTrace();
    }

    @Override
    public void testFinished(Description test) {
        if (!hasFailed) {
            System.out.println("passed " + name(test));
        }
    }

    @Override
    public void testIgnored(Description test) {
        System.out.println("skipped " + name(test));
    }
}
