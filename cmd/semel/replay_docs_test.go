package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// newReplayDocsFolder returns a folder in which the commands of docs/operate/replay.md work. The folder
// has the files of the script about replays, and a consumer with the name search.
func newReplayDocsFolder(t *testing.T) string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/script/replay.txtar")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, f := range archive.Files {
		text := strings.Replace(string(f.Data), "\n  orders:\n    from", "\n  search:\n    from", 1)
		if f.Name == "semel.yaml" {
			text = strings.Replace(text, "sources:\n", "sources:\n  topic: {kafka: {brokers: \"127.0.0.1:1\", topics: orders}}\n", 1) +
				"  orders:\n    from: topic\n    store: shop\n    identity: {id: id, source: source}\n    replay: {allowed: true}\n    handler: {sql: {params: {id: id}, statements: [\"insert into booked values (:id)\"]}}\n"
		}
		if err := os.WriteFile(filepath.Join(folder, f.Name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	output(t, folder, "semel", "run", "--consumer", "search")
	output(t, folder, "sqlite", "shop.db", "delete from semel_markers where scope = 1 and hex(id) in ('006F32', '006F35')", "delete from sent where id in ('o2', 'o5')")
	output(t, folder, "bytes", "in.jsonl", `{"specversion":"1.0","id":"o1","source":"shop","type":"t","time":"2026-01-07T00:00:00Z","data":{"n":9}}`+"\n"+
		`{"specversion":"1.0","source":"shop","type":"t","data":{"n":9}}`+"\n")
	return folder
}

// shellWord matches the words of a shell command line.
var shellWord = regexp.MustCompile(`'[^']*'|[^\s']+`)

func TestTheCommandsOfThePageAboutReplays(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	folder := newReplayDocsFolder(t)
	tried := 0
	blocks := strings.Split(string(page), "```")
	for i := 1; i < len(blocks); i += 2 {
		for line := range strings.Lines(strings.TrimPrefix(blocks[i], "sh\n")) {
			if !strings.HasPrefix(line, "semel ") || !strings.HasPrefix(blocks[i], "sh\n") {
				continue
			}
			var words []string
			for _, w := range shellWord.FindAllString(line, -1) {
				words = append(words, strings.Trim(w, "'"))
			}
			if slices.Contains(words, "stop") {
				output(t, folder, "sqlite", "shop.db", "update semel_replays set state = 'running', ended_at = null, lease_until = 0 where number = 1")
			}
			cmd := exec.Command(words[0], words[1:]...)
			var out, log bytes.Buffer
			cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &out, &log
			err := cmd.Run()
			if code := cmd.ProcessState.ExitCode(); code == 2 || code != 0 && !strings.Contains(line, "orders/0") {
				t.Errorf("%s: %v: %s", strings.TrimSpace(line), err, &log)
			}
			tried++
			if i+2 < len(blocks) && strings.HasPrefix(blocks[i+2], "\n") {
				for want := range strings.Lines(strings.TrimPrefix(blocks[i+2], "\n")) {
					if !strings.Contains(out.String()+log.String(), want) {
						t.Errorf("%s does not print %q but %s%s", strings.TrimSpace(line), want, &out, &log)
					}
				}
			}
		}
	}
	if tried < 8 {
		t.Errorf("the page has %d commands", tried)
	}
}
