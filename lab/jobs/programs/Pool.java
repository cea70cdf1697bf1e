import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.List;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;

/** Hashes files with a pool of threads, three times. Usage: Pool FOLDER THREADS PASSES */
class Pool {
    record Result(String worker, byte[] sum) {}

    public static void main(String[] args) throws Exception {
        List<Path> paths;
        try (var all = Files.list(Path.of(args[0]))) {
            paths = all.sorted().toList();
        }
        int threads = Integer.parseInt(args[1]), passes = Integer.parseInt(args[2]);
        try (var truth = new Truth()) {
            for (int epoch = 0; epoch < 3; epoch++) {
                String window = truth.begin(epoch);
                long begin = System.nanoTime();
                hashAll(truth, paths, threads, passes);
                truth.end(epoch, window, begin);
            }
        }
    }

    static void hashAll(Truth truth, List<Path> paths, int threads, int passes) throws Exception {
        var number = new AtomicInteger();
        ExecutorService pool =
                Executors.newFixedThreadPool(threads, work -> new Thread(work, "worker" + number.getAndIncrement()));
        var results = new ExecutorCompletionService<Result>(pool);
        for (Path path : paths) {
            results.submit(() -> hash(truth, path, passes));
        }
        for (Path path : paths) {
            long begin = System.nanoTime();
            Result result = results.take().get();
            truth.log("main", "wait", begin, System.nanoTime(), result.worker());
        }
        pool.shutdown();
    }

    static Result hash(Truth truth, Path path, int passes) throws Exception {
        String worker = Thread.currentThread().getName();
        long ready = Truth.ready(), begin = System.nanoTime();
        byte[] data = Files.readAllBytes(path);
        long end = System.nanoTime();
        truth.log(worker, "read", begin, end, data.length + ":" + (Truth.ready() - ready));
        byte[] sum = new byte[0];
        for (int i = 0; i < passes; i++) {
            var digest = MessageDigest.getInstance("SHA-256");
            digest.update(sum);
            sum = digest.digest(data);
        }
        return new Result(worker, sum);
    }
}

/** Writes the log that truth.py describes. System.nanoTime is CLOCK_MONOTONIC. */
class Truth implements AutoCloseable {
    private static final Pattern ID = Pattern.compile("\"id\"\\s*:\\s*\"([^\"]+)\"");
    private final FileOutputStream file =
            new FileOutputStream(System.getenv("JOBS_LOG") + "/" + ProcessHandle.current().pid() + ".log", true);

    Truth() throws IOException {}

    @Override
    public void close() throws IOException {
        file.close();
    }

    void log(String thread, String kind, long begin, long end, String argument) {
        var line = thread + " " + kind + " " + begin + " " + end + " " + argument + "\n";
        try {
            file.write(line.getBytes(StandardCharsets.US_ASCII)); // one call, so that lines do not mix
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** How long the calling thread has been ready without a core, in ns. */
    static long ready() throws IOException {
        return Long.parseLong(Files.readString(Path.of("/proc/thread-self/schedstat")).split(" ")[1]);
    }

    /** Announces a window and returns its id. */
    String begin(int label) throws IOException {
        machine();
        var id = ID.matcher(post("/v1/windows", "{\"kind\":\"epoch\",\"epoch\":" + label + "}"));
        if (!id.find()) {
            throw new IOException("the answer has no id");
        }
        return id.group(1);
    }

    void end(int label, String window, long begin) throws IOException {
        log("main", "window", begin, System.nanoTime(), label + ":" + window);
        post("/v1/windows/" + window + "/end", "{}");
        machine();
    }

    private static String post(String path, String body) throws IOException {
        try (var socket = SocketChannel.open(StandardProtocolFamily.UNIX)) {
            socket.connect(UnixDomainSocketAddress.of(System.getenv("STALLSPAN_SOCKET")));
            var request = "POST " + path + " HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Content-Length: " + body.length() + "\r\n\r\n" + body;
            socket.write(ByteBuffer.wrap(request.getBytes(StandardCharsets.US_ASCII)));
            var answer = new String(Channels.newInputStream(socket).readAllBytes(), StandardCharsets.UTF_8);
            if (!answer.contains(" 200 ") && !answer.contains(" 201 ")) {
                throw new IOException(path + ": " + answer);
            }
            return answer;
        }
    }

    /** Logs the state of the machine. */
    private void machine() throws IOException {
        String sectors = "0", device = System.getenv("JOBS_DEVICE");
        if (device != null && !device.isEmpty()) {
            sectors = Files.readString(Path.of("/sys/block", device, "stat")).trim().split("\\s+")[2];
        }
        String[] all = Files.readAllLines(Path.of("/proc/stat")).get(0).split("\\s+"); // cpu user nice system idle ...
        long work = 0;
        for (int i : new int[] {1, 2, 3, 6, 7}) {
            work += Long.parseLong(all[i]);
        }
        String own = Files.readString(Path.of("/proc/self/stat"));
        String[] fields = own.substring(own.lastIndexOf(')') + 2).split(" ");
        long ticks = Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
        log("main", "machine", System.nanoTime(), 0, sectors + ":" + all[8] + ":" + work + ":" + ticks);
    }
}
