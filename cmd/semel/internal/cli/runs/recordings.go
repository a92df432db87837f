package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
	"github.com/spf13/cobra"
)

// recordingKind is the cause of a recording. The file name of a recording ends with the kind. Old recordings
// are removed separately for each kind, so that recordings that a person requested do not displace a
// recording of a violated guarantee.
type recordingKind string

// The kinds of recordings.
const (
	manualRecording    recordingKind = ".recording"
	violationRecording recordingKind = "-law.recording"
)

const (
	// mostKept is the maximum number of stored recordings for each consumer and kind.
	mostKept = 10
	// stampForm is the format of the time in file names. Sorting the names sorts recordings by time.
	stampForm = "20060102T150405.000000Z"
)

func (k recordingKind) file(consumer string, at time.Time) string {
	return url.PathEscape(consumer) + "-" + at.UTC().Format(stampForm) + string(k)
}

// prune removes the oldest recordings of a consumer and kind if there are more than mostKept. prune keeps the
// recording that was just written, even if the clock was set back. For violated guarantees, prune also keeps
// the first recording, because the first recording shows how the fault started. prune does not touch files
// with other names.
func (k recordingKind) prune(folder, consumer, written string) error {
	all, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var names []string
	for _, f := range all {
		stamp, ours := strings.CutPrefix(f.Name(), url.PathEscape(consumer)+"-")
		stamp, ends := strings.CutSuffix(stamp, string(k))
		if _, err := time.Parse(stampForm, stamp); ours && ends && err == nil && f.Type().IsRegular() && f.Name() != written {
			names = append(names, f.Name())
		}
	}
	slices.Sort(names)
	if k == violationRecording && len(names) > 0 {
		names = names[1:]
	}
	var failed []error
	for _, name := range names[:max(0, len(names)-k.maxOthers())] {
		if err := os.Remove(filepath.Join(folder, name)); !errors.Is(err, fs.ErrNotExist) { // another process may have removed the file already
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// maxOthers is the number of stored recordings besides those that prune always keeps.
func (k recordingKind) maxOthers() int {
	if k == violationRecording {
		return mostKept - 2
	}
	return mostKept - 1
}

func recordCommand(c *command.CLI) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Save a flight recording",
		Long: `Ask the run at the address of the policy key listen to save the latest events
and decisions of its consumers, and print the file names. The files are on the
run's machine, in the folder of the policy key recorder.

The files contain hashes of messages, and nothing else of them. SIGUSR1 does
the same without an address.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := listenAddress(c, timeout, "a run cannot be asked: add listen: 127.0.0.1:9464, or send the process SIGUSR1")
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			answer, err := askToRecord(ctx, l)
			if err != nil {
				return command.Failed(err)
			}
			return printRecorded(c, answer)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "how long to wait for the answer")
	return c.WithConfig(cmd)
}

func printRecorded(c *command.CLI, answer metrics.Recorded) error {
	if c.JSON {
		if err := c.WriteJSON(answer); err != nil {
			return err
		}
	} else {
		for _, file := range answer.Files {
			if _, err := fmt.Fprintln(c.Out, file); err != nil {
				return command.Failed(err)
			}
		}
	}
	if answer.Error != "" {
		return command.Failed(errors.New(answer.Error))
	}
	return nil
}

// askToRecord asks the process at the policy's address to write its recordings.
func askToRecord(ctx context.Context, l policy.Listen) (answer metrics.Recorded, err error) {
	response, err := call(ctx, l, http.MethodPost, metrics.PathRecord)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusUnauthorized {
		return answer, fmt.Errorf("%s wants another token, or a certificate of listen.tls.clients, which this command has not: send the process SIGUSR1", l.Address)
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusServiceUnavailable {
		return answer, fmt.Errorf("%s answers %s: it is no run of semel, or an earlier release", l.Address, response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, mostHealth)).Decode(&answer); err != nil {
		return answer, fmt.Errorf("%s answers %s without files: it is no run of semel", l.Address, response.Status)
	}
	return answer, nil
}

// recorders has the flight recorders of a run's consumers.
type recorders struct {
	policy policy.Recorder
	fault  func(path, reason, remedy string) shape.Fault
	log    *slog.Logger
	now    func() time.Time

	mutex sync.Mutex
	names []string
	all   map[string]*consumer.Recorder // guarded by mutex
}

func newRecorders(p *policy.Policy, log *slog.Logger) *recorders {
	return &recorders{fault: p.Fault, policy: p.Recorder, log: log, now: time.Now, all: map[string]*consumer.Recorder{}}
}

// check returns an error if recordings cannot be written. A run calls check before it reads from a source.
func (r *recorders) check() error {
	if r.policy.Folder == "" {
		return nil
	}
	if info, err := os.Stat(r.policy.Folder); err != nil || !info.IsDir() {
		return r.fault("recorder.folder", r.policy.Folder+" is no folder", "make it, or name another one")
	}
	f, err := os.CreateTemp(r.policy.Folder, ".semel-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return r.fault("recorder.folder", fmt.Sprintf("nothing can be written there: %v", err), "let this user write there, or name another folder")
	}
	return nil
}

// recorderFunc returns a function that returns the recorder of a consumer. The method returns nil if the
// policy disables recordings.
func (r *recorders) recorderFunc() func(name string) *consumer.Recorder {
	if r.policy.Folder == "" {
		return nil
	}
	return func(name string) *consumer.Recorder {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if r.all[name] == nil {
			r.names = append(r.names, name)
			r.all[name] = &consumer.Recorder{Size: r.policy.Size, IDs: r.policy.IDs, Broken: func(law string) {
				r.logWritten(r.writeOne(name, law+" is broken", violationRecording))
			}}
		}
		return r.all[name]
	}
}

func (r *recorders) recorder(name string) *consumer.Recorder {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.all[name]
}

var errNotRecorded = errors.New("nothing is recorded: give the policy a recorder, as recorder: {folder: recordings}, and start the run anew")

// writeAll makes a recording of each consumer and returns the file names. The parameter why is the
// reason, which the recordings contain.
func (r *recorders) writeAll(why string) (files []string, err error) {
	if r.policy.Folder == "" {
		return nil, errNotRecorded
	}
	r.mutex.Lock()
	names := append([]string(nil), r.names...)
	r.mutex.Unlock()
	for _, name := range names {
		file, failed := r.writeOne(name, why, manualRecording)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		files = append(files, file)
	}
	return files, err
}

// writeOne writes one recording, and then removes old recordings of the same kind.
func (r *recorders) writeOne(name, why string, of recordingKind) (string, error) {
	file := filepath.Join(r.policy.Folder, of.file(name, r.now()))
	if whole, err := filepath.Abs(file); err == nil { // the reader of the log may work in another folder, so log the absolute path
		file = whole
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("no recording of %s is written: %w", name, err)
	}
	err = r.recorder(name).Write(f, why)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("no recording of %s is written: %w", name, err), os.Remove(file))
	}
	if err := of.prune(r.policy.Folder, name, filepath.Base(file)); err != nil {
		r.log.Error("recordings that are too many are not removed", "error", err)
	}
	return file, nil
}

func (r *recorders) logWritten(file string, err error) {
	if err != nil {
		r.log.Error("the recording is not written", "error", err)
		return
	}
	r.log.Warn("a recording is written", "file", file)
}

// writeOnSignal writes the recordings after a signal and logs the file names.
func (r *recorders) writeOnSignal() {
	files, err := r.writeAll("a signal asked for it")
	for _, file := range files {
		r.logWritten(file, nil)
	}
	if err != nil {
		r.logWritten("", err)
	}
}
