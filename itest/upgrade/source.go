//go:build unix

package upgrade

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/topics"
)

// Source is the input of both releases.
type Source interface {
	// Feeds returns how often the source contains each message with its duplicates, for the given number of readers.
	Feeds(readers int) int
	// Policy returns the line for the source in the policy file of a reader. If follow is true, a run does not end by
	// itself.
	Policy(reader string, follow bool) string
	// Extend writes deliveries to the end of a reader's feed.
	Extend(reader string, deliveries []delivery) error
	// Rest returns the flags for a run that reads the remaining messages and ends. Again returns the flags for a run
	// that reads all messages from the beginning.
	Rest() []string
	Again(release string) []string
	// Astray returns the number of files or partitions that are not read to their ends.
	Astray(ctx context.Context, store ledger.Reader, readers []*slot) (int, error)
}

// files is a folder with a file for each reader. Each file has all messages in an order of its own.
type files struct{ folder string }

// Files returns a source of files in the folder of the run.
func Files(folder string) Source { return files{folder} }

func (files) Feeds(readers int) int { return readers }

func (files) Policy(reader string, follow bool) string {
	return fmt.Sprintf("file: {path: %s.jsonl, format: envelope, follow: %t}", reader, follow)
}

func (f files) path(reader string) string { return filepath.Join(f.folder, reader+".jsonl") }

func (f files) Extend(reader string, deliveries []delivery) error {
	to, err := os.OpenFile(f.path(reader), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer to.Close()
	var text strings.Builder
	for _, d := range deliveries {
		fmt.Fprintf(&text, `{"headers":%s,"body":%s}`+"\n", d.headers(), d.body())
	}
	if _, err := to.WriteString(text.String()); err != nil {
		return err
	}
	return to.Close()
}

func (files) Rest() []string        { return []string{"run"} }
func (files) Again(string) []string { return []string{"run", "--from-start"} }

func (f files) Astray(ctx context.Context, store ledger.Reader, readers []*slot) (astray int, err error) {
	for _, s := range readers {
		info, err := os.Stat(f.path(s.name))
		if err != nil {
			return 0, err
		}
		var there int
		query := fmt.Sprintf(`select count(*) from semel_positions where lane = '%s.jsonl' and "offset" = %d`, s.name, info.Size())
		if err := store.QueryRowContext(ctx, query).Scan(&there); err != nil {
			return 0, err
		}
		astray += 1 - there
	}
	return astray, nil
}

// topic is one topic that all readers share as members of one group. A reader keeps its member name after a restart and
// with both releases.
type topic struct {
	cluster *topics.Cluster
	brokers []string
	name    string
	group   string
	written int
}

// The number of partitions, which is enough for all readers.
const partitions = 4

// Topic returns a new topic on the shared broker.
func Topic(t testing.TB) Source {
	t.Helper()
	brokers := services.Kafka(t)
	return &topic{cluster: topics.Open(t, brokers), brokers: brokers, name: services.Topic(t, brokers, partitions), group: topics.Name()}
}

func (*topic) Feeds(int) int { return 1 }

func (k *topic) Policy(reader string, _ bool) string {
	return fmt.Sprintf("kafka: {brokers: %q, topics: [%s], group: %s, instance: %s, session_timeout: 6s}",
		strings.Join(k.brokers, ","), k.name, k.group, reader)
}

func (k *topic) Extend(_ string, deliveries []delivery) error {
	var records []*kgo.Record
	for _, d := range deliveries {
		records = append(records, topics.Record(k.name, int32(k.written%partitions), d.id, d.body()))
		k.written++
	}
	k.cluster.Produce(records...)
	return nil
}

func (*topic) Rest() []string { return []string{"run", "--exit-when-idle", "1s"} }

// Again returns flags with which a release reads from the beginning as a new group.
func (k *topic) Again(release string) []string {
	k.group = topics.Name() + "-" + release
	return k.Rest()
}

func (k *topic) Astray(context.Context, ledger.Reader, []*slot) (astray int, err error) {
	committed := k.cluster.Committed(k.group, k.name)
	for partition, end := range k.cluster.Ends(k.name) {
		if committed[partition] != end {
			astray++
		}
	}
	return astray, nil
}
