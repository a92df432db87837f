package assembly

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/internal/laneoffset"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// source creates the source of one consumer. Each consumer reads a source separately.
func (a *Assembly) source(c *policy.Consumer) (source.Source, error) {
	if c.Sends() {
		return nil, nil
	}
	s := a.policy.Source(c.From)
	if s.Kafka != nil {
		return a.kafkaSource(c, s)
	}
	if s.Webhook != nil {
		return a.webhookSource(c, s)
	}
	return a.fileSource(c, s.File)
}

// NotAFile returns the name of a source of the selected consumers that is not a file, or "" if all sources
// are files.
func NotAFile(p *policy.Policy, consumer string) string {
	for _, c := range p.Consumers {
		if s := p.Source(c.From); s != nil && s.File == nil && (consumer == "" || c.Name == consumer) {
			return s.Name
		}
	}
	return ""
}

func (a *Assembly) fileSource(c *policy.Consumer, f *policy.File) (source.Source, error) {
	format, err := formatOf(f.Format)
	if err != nil {
		return nil, err
	}
	o := file.Options{
		Format:  format,
		Follow:  f.Follow || c.Rebuilds(),
		MaxLine: int(f.MaxLine),
		Lane:    a.lane(f.Path),
		Notice: func(what string) {
			a.options.Logger.Warn(what, slog.String("consumer", c.Name), slog.String("source", c.From))
		},
	}
	if f.Path == shape.Stdin {
		return file.Stdin(a.options.Stdin, o), nil
	}
	src := &monitoredFile{Source: file.Open(f.Path, o), path: f.Path, fromStart: a.options.FromStart, logStart: func(src slog.LogValuer) {
		a.options.Logger.Info("file opened", slog.String("consumer", c.Name), slog.Any("source", src))
	}}
	if o.Follow {
		return src, nil // a file that is followed may be created later
	}
	return src, src.Validate()
}

// lane returns the lane of a file. The lane is the path below the folder of the policy, so the lane does not
// depend on the working directory.
func (a *Assembly) lane(path string) string {
	if path == shape.Stdin {
		return "stdin"
	}
	dir, err := filepath.Abs(a.policy.Dir)
	if err != nil {
		return path
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if below, err := filepath.Rel(dir, full); err == nil && filepath.IsLocal(below) {
		return filepath.ToSlash(below)
	}
	return full
}

func formatOf(word string) (file.Format, error) {
	formats := map[string]file.Format{"cloudevents": file.CloudEvents, "envelope": file.Envelope, "json": file.JSON}
	format, ok := formats[word]
	if !ok {
		return 0, fmt.Errorf("format %q is unknown", word)
	}
	return format, nil
}

// Recovery returns a helper that compares the consumer's store with the committed offsets of the group, and
// can reset the positions in the store or the offsets. Recovery returns nil for a consumer without a group:
// the position of a file is stored together with the effects, so position and effects always agree. The
// caller must close the helper.
func (a *Assembly) Recovery(c *policy.Consumer) (*kafka.Recovery, error) {
	s := a.policy.Source(c.From)
	if s == nil || s.Kafka == nil || a.policy.Store(c.Store).Redis != nil { // Redis stores no positions
		return nil, nil
	}
	offsets, keeps := a.store(c.Store).tables.(laneoffset.Store)
	if !keeps {
		return nil, fmt.Errorf("consumer %s: store %s keeps no positions of partitions", c.Name, c.Store)
	}
	config, err := a.kafkaConfig(c, s, newLanes(a.options.Logger, time.Now))
	if err != nil {
		return nil, err
	}
	recovery, err := kafka.NewRecovery(config, c.Name, offsets)
	if err != nil {
		return nil, fmt.Errorf("consumer %s: source %s: %w", c.Name, c.From, err)
	}
	return recovery, nil
}

// RecordOf writes an operator's command to the audit trail of the consumer's store.
func (a *Assembly) RecordOf(ctx context.Context, c *policy.Consumer, act store.Act) error {
	s := a.store(c.Store)
	return s.Failed(s.Record(ctx, act))
}

// Letters calls the function each for every record of a dead-letter topic, up to the current end of the
// topic. The dead-letter topic is in the cluster of the consumer's source.
func (a *Assembly) Letters(ctx context.Context, c *policy.Consumer, topic string, each func(kafka.Letter) error) error {
	s := a.policy.Source(c.From)
	if s == nil || s.Kafka == nil {
		return fmt.Errorf("consumer %s reads no topic, so it has no dead-letter topic", c.Name)
	}
	config, err := a.kafkaConfig(c, s, newLanes(a.options.Logger, time.Now))
	if err != nil {
		return err
	}
	if err := kafka.ReadLetters(ctx, config, topic, each); err != nil {
		return fmt.Errorf("consumer %s: source %s: %w", c.Name, c.From, err)
	}
	return nil
}

// Positions returns, by topic and partition, the offset up to which the consumer's store has processed all
// records.
func (a *Assembly) Positions(ctx context.Context, c *policy.Consumer) (map[string]map[int32]int64, error) {
	recovery, err := a.Recovery(c)
	if err != nil || recovery == nil {
		return nil, err
	}
	defer recovery.Close()
	all, err := recovery.Compare(ctx)
	if err != nil {
		return nil, err
	}
	at := map[string]map[int32]int64{}
	for _, p := range all {
		if at[p.Topic] == nil {
			at[p.Topic] = map[int32]int64{}
		}
		at[p.Topic][p.Partition] = p.Store
	}
	return at, nil
}

// monitoredFile is a file source that reports how much of the file is not processed.
type monitoredFile struct {
	*file.Source
	path string
	// fromStart reads the file from the start, not from the position of the last run.
	fromStart bool
	done      atomic.Int64
	// began is the offset at which the last run stopped; 0 if the run starts at the beginning or the offset
	// is unknown.
	began atomic.Int64
	// logStart logs the position at which reading starts.
	logStart func(slog.LogValuer)
}

// Lanes implements source.Source. Lanes also logs when the file is open and its lane is assigned.
func (w *monitoredFile) Lanes(o source.LaneObserver) { w.Source.Lanes(givenFile{o, w}) }

// givenFile observes the only lane of a file.
type givenFile struct {
	source.LaneObserver
	file *monitoredFile
}

// Given implements source.LaneObserver.
func (o givenFile) Given(l source.Lane) {
	o.file.logStart(o.file.Source)
	o.LaneObserver.Given(l)
}

// Info implements source.Source. The returned source records each saved position in w.
func (w *monitoredFile) Info() source.Info {
	info := w.Source.Info()
	keep := info.Positions
	info.Positions = func(consumer string, store source.PositionStore) { keep(consumer, recordingPositions{store, w}) }
	return info
}

// line returns the line for the terminal, with the number of unprocessed bytes in the file.
func (w *monitoredFile) line() string {
	info, err := os.Stat(w.path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("behind %.1f MB", float64(max(info.Size()-w.done.Load(), 0))/1e6)
}

// readBefore reports whether the file has no new lines since the last run. readBefore also returns the
// file's length.
func (w *monitoredFile) readBefore() (int64, bool) {
	info, err := os.Stat(w.path)
	began := w.began.Load()
	return began, err == nil && began > 0 && info.Size() == began
}

// recordingPositions is a position store that also keeps the latest offset in the field file.
type recordingPositions struct {
	source.PositionStore
	file *monitoredFile
}

func (n recordingPositions) LoadPosition(ctx context.Context, consumer, lane string) (source.Position, bool, error) {
	if n.file.fromStart {
		return source.Position{}, false, nil
	}
	p, known, err := n.PositionStore.LoadPosition(ctx, consumer, lane)
	n.file.done.Store(p.Offset)
	n.file.began.Store(p.Offset)
	return p, known, err
}

func (n recordingPositions) SavePosition(ctx context.Context, consumer, lane string, p source.Position) error {
	err := n.PositionStore.SavePosition(ctx, consumer, lane, p)
	if err == nil {
		n.file.done.Store(p.Offset)
	}
	return err
}
