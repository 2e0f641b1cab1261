// The scenarios of ../SCENARIOS.md on github.com/rabbitmq/rabbitmq-stream-go-client.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

// server is how to reach the server, as given on the command line.
type server struct {
	host     string
	port     int
	tlsPort  int
	ca       string
	otherCA  string
	certPath string
	keyPath  string
}

// result is what a scenario prints behind "ok".
type result map[string]any

// scenario is one section of the page.
type scenario struct {
	name string
	do   func(*run) (result, error)
}

// scenarios are all that this library offers, in the order of the page.
var scenarios = []scenario{
	{"publish", publish},
	{"batch", batch},
	{"large", large},
	{"sub-none", subEntries("none")},
	{"sub-gzip", subEntries("gzip")},
	{"sub-snappy", subEntries("snappy")},
	{"sub-lz4", subEntries("lz4")},
	{"sub-zstd", subEntries("zstd")},
	{"offset-first", offsetFirst},
	{"offset-last", offsetLast},
	{"offset-next", offsetNext},
	{"offset-absolute", offsetAbsolute},
	{"offset-beyond", offsetBeyond},
	{"offset-timestamp", offsetTimestamp},
	{"offset-future", offsetFuture},
	{"tracking", tracking},
	{"dedup", dedup},
	{"filter", filter},
	{"super-hash", superHash},
	{"super-key", superKey},
	{"super-read", superRead},
	{"sac", sac},
	{"super-sac", superSac},
	{"reconnect", reconnect},
	{"tls", tlsTrusted},
	{"tls-distrust", tlsDistrust},
	{"tls-external", tlsExternal},
	{"errors", codes},
	{"write", write},
	{"read", read},
}

func main() {
	var at server
	flag.StringVar(&at.host, "host", "localhost", "the server's name")
	flag.IntVar(&at.port, "port", 5552, "its plain port")
	flag.IntVar(&at.tlsPort, "tls-port", 5551, "its TLS port")
	flag.StringVar(&at.ca, "ca", "", "authority of the server's certificate")
	flag.StringVar(&at.otherCA, "other-ca", "", "an authority that did not sign it")
	flag.StringVar(&at.certPath, "cert", "", "the client's certificate")
	flag.StringVar(&at.keyPath, "key", "", "its key")
	flag.Parse()

	lines := bufio.NewScanner(os.Stdin)
	if flag.NArg() > 0 {
		perform(at, flag.Args(), lines)
		return
	}
	var names []string
	for _, each := range scenarios {
		names = append(names, each.name)
	}
	say(map[string]any{"ready": map[string]any{
		"client": "go", "version": stream.ClientVersion, "scenarios": names,
	}})
	for lines.Scan() {
		perform(at, strings.Fields(lines.Text()), lines)
	}
}

// perform runs one scenario, given as its words, and prints how it ended.
func perform(at server, words []string, lines *bufio.Scanner) {
	outcome, err := attempt(at, words, lines)
	if err != nil {
		say(map[string]any{"error": err.Error()})
	} else {
		say(map[string]any{"ok": outcome})
	}
}

func attempt(at server, words []string, lines *bufio.Scanner) (outcome result, err error) {
	if len(words) < 2 {
		return nil, fmt.Errorf("expected SCENARIO STREAM, got %q", words)
	}
	r := &run{server: at, stream: words[1], values: map[string]string{}, lines: lines}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		r.values[name] = value
	}
	defer r.close()
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v", fault)
		}
	}()
	for _, each := range scenarios {
		if each.name == words[0] {
			return each.do(r)
		}
	}
	return nil, fmt.Errorf("no scenario %q", words[0])
}

// say prints one line of JSON; a line goes out at once, os.Stdout is not buffered.
func say(document any) {
	line, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

// waitFor tells the harness what is to be done and returns when it was.
func (r *run) waitFor(what string) error {
	say(map[string]any{"wait": what})
	if r.lines.Scan() && strings.TrimSpace(r.lines.Text()) == "go" {
		return nil
	}
	return fmt.Errorf("expected the line go, got %q", r.lines.Text())
}
