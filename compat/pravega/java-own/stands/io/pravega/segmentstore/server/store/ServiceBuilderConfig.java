package io.pravega.segmentstore.server.store;

/** Hutch's defaults. */
public class ServiceBuilderConfig {
    public static ServiceBuilderConfig getDefaultConfig() {
        return new ServiceBuilderConfig();
    }
}
