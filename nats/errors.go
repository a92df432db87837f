package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
)

// isGone reports whether an error means that the stream or the consumer does not exist.
func isGone(err error) bool {
	return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrConsumerNotFound) ||
		errors.Is(err, jetstream.ErrConsumerDoesNotExist) || errors.Is(err, jetstream.ErrNotPullConsumer)
}

// explain returns an error with the object that failed and with what to do. If only a person can change the reason, the
// error has semel.DecidePermanent.
func (s *Source) explain(err error) error {
	c := &s.config
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	denied := s.deniedPermission()
	switch {
	case is(nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired, nats.ErrNkeysNotSupported):
		return permanent("nats: %s rejected the credentials; correct Credentials, or the user and password in Servers: %w", c.servers(), err)
	case is(jetstream.ErrStreamNotFound):
		return permanent("nats: stream %s does not exist on %s; correct Stream, or create the stream: nats stream add %s: %w", c.Stream, c.servers(), c.Stream, err)
	case is(jetstream.ErrConsumerNotFound, jetstream.ErrConsumerDoesNotExist):
		return permanent("nats: stream %s has no consumer %s; correct Consumer, or create the consumer: %s: %w", c.Stream, c.Consumer, createCommand(c.Stream, c.Consumer), err)
	case is(jetstream.ErrNotPullConsumer):
		return permanent("nats: consumer %s of stream %s is a push consumer; create a pull consumer: %s: %w", c.Consumer, c.Stream, createCommand(c.Stream, "NAME"), err)
	case is(jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount):
		return permanent("nats: JetStream is not enabled on %s, or not for this account; enable it in the configuration of the server: %w", c.servers(), err)
	case denied != nil && is(context.DeadlineExceeded, nats.ErrTimeout):
		return permanent("nats: the user may not read consumer %s of stream %s; allow the user the subjects of the error in the configuration of the server: %w", c.Consumer, c.Stream, denied)
	case is(jetstream.ErrConsumerDeleted):
		return fmt.Errorf("nats: consumer %s of stream %s was deleted: %w", c.Consumer, c.Stream, err)
	case is(nats.ErrNoResponders):
		return fmt.Errorf("nats: JetStream does not answer on %s for stream %s; if this does not pass, check that JetStream is enabled and that Domain is right: %w", c.servers(), c.Stream, err)
	case is(context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoServers):
		return fmt.Errorf("nats: %s does not answer; check that a server runs there: %w", c.servers(), err)
	}
	return fmt.Errorf("nats: stream %s, consumer %s on %s: %w", c.Stream, c.Consumer, c.servers(), err)
}

func permanent(format string, values ...any) error {
	return semel.Permanent(fmt.Errorf(format, values...))
}

// deniedPermission returns the last permission that the server has refused, or nil.
func (s *Source) deniedPermission() error {
	if conn := s.connection(); conn != nil && errors.Is(conn.LastError(), nats.ErrPermissionViolation) {
		return conn.LastError()
	}
	return nil
}
