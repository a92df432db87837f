package assembly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/source"
)

// The maximum numbers of messages that Read and ReadSource return.
const (
	mostGiven      = 100
	mostFromSource = 5
)

// Read reads the messages of a trial from a file with one message a line. Copies of a message are left out. A
// line without a message, or with a message without an id, is an error. The parameter name is the name of the
// file, for errors.
func (t *Trial) Read(ctx context.Context, name string, in io.Reader) error {
	return t.read(ctx, name, in, mostGiven, func(line int, fault string) error {
		return fmt.Errorf("%s: line %d: %s", name, line, fault)
	})
}

// ReadSource reads the first messages of a source's file, as Read does, but skips lines without an id.
func (t *Trial) ReadSource(ctx context.Context, name string, in io.Reader) error {
	return t.read(ctx, name, in, mostFromSource, func(int, string) error { return nil })
}

func (t *Trial) read(ctx context.Context, name string, in io.Reader, most int, unusable func(line int, fault string) error) error {
	src := file.Section(in, 0, name, file.Options{Format: t.sourceFormat(), Lane: name})
	defer src.Close(context.WithoutCancel(ctx))
	var known []semel.Key
	for line := 1; len(t.Messages) < most; line++ {
		found, err := src.Fetch(ctx, source.Bound{Messages: 1, Bytes: 1})
		switch {
		case errors.Is(err, source.ErrEnd):
			return nil
		case err != nil:
			return err
		case len(found) == 0:
			return ctx.Err()
		}
		d := &found[0]
		d.Decode(nil)
		if key, fault := t.keyOf(d); fault != "" {
			if err := unusable(line, fault); err != nil {
				return err
			}
		} else if !slices.Contains(known, key) {
			known, t.Messages = append(known, key), append(t.Messages, d.Message)
		}
		if _, err := src.Settle(ctx, []source.Settlement{{Delivery: d, Kind: semel.Ack}}); err != nil {
			return err
		}
	}
	return nil
}

// keyOf returns the identity of a message, or the reason why the message has no identity.
func (t *Trial) keyOf(d *source.Delivery) (key semel.Key, fault string) {
	if d.Refused != "" {
		return key, d.Detail
	}
	key, err := t.identityOf(d.Message)
	if err != nil {
		return key, err.Error()
	}
	return key, ""
}

// identityOf returns the identity of a message, as the consumer finds it.
func (t *Trial) identityOf(m *semel.Message) (semel.Key, error) {
	from := t.Consumer.Config().Identity
	if from == nil {
		from = identity.CloudEvents()
	}
	read, key := *m, semel.Key{Consumer: t.Consumer.Name}
	var err error
	key.Source, key.ID, err = from.Identify(&read)
	return key, err
}

// sourceFormat returns the format of the messages in the consumer's source. If the source is not a
// file, the function returns file.Envelope.
func (t *Trial) sourceFormat() file.Format {
	if s := t.Policy.Source(t.Consumer.From); s != nil && s.File != nil {
		if format, err := formatOf(s.File.Format); err == nil {
			return format
		}
	}
	return file.Envelope
}
