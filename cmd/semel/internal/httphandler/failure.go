package httphandler

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
)

// failure is a call that came to no answer. Its text is made here: those of net/http may
// quote what was answered.
type failure struct {
	text string
	err  error
}

func (e *failure) Error() string { return e.text }
func (e *failure) Unwrap() error { return e.err }

// failed says what became of a call that came to no answer: nobody knows, unless nothing
// was sent.
func (h *Handler) failed(ctx context.Context, c *call, err error) error {
	sent := c.sent()
	why := h.why(ctx, err, sent)
	if sent {
		return semel.Unknown(&failure{"the outcome of the call to " + h.host + " is not known: " + why + "; " + h.next(), err})
	}
	return semel.Retry(&failure{"nothing was sent to " + h.host + ": " + why, err})
}

// next says what a call after an unknown outcome is, if there is one: the last error of a
// message whose attempts are used up has the same text.
func (h *Handler) next() string {
	switch {
	case h.config.MayBeLost:
		return "it carries no key and is not made again"
	case h.config.NoKey:
		return "it carries no key, and another call may have it happen twice"
	}
	return "another call has the same key, and is made while the window lasts"
}

func (h *Handler) why(ctx context.Context, err error, sent bool) string {
	cause := context.Cause(ctx)
	var operation *net.OpError
	var handshake *handshakeError
	switch {
	case errors.Is(cause, errTimeout):
		return "there was no whole answer within " + legible.Span(h.config.Timeout)
	case cause != nil:
		return "the call was ended here"
	case errors.As(err, &handshake):
		return h.encryption(handshake.err)
	case errors.As(err, &operation) && (!sent || operation.Op == "remote error"): // an alert of TLS
		return legible.Printable(operation.Error())
	case operation != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errNotAgain):
		return "the connection ended before the answer did"
	}
	return "what came is no answer of HTTP"
}

// encryption says why both sides did not agree.
func (h *Handler) encryption(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var header tls.RecordHeaderError
	switch {
	case errors.As(err, &name):
		return "its certificate is of another host; call it by a name that it has"
	case errors.As(err, &authority):
		return "its certificate is of an authority that is not known here; name that with tls: {ca: FILE}"
	case errors.As(err, &invalid):
		return "its certificate is not valid: " + legible.Printable(invalid.Error())
	case errors.As(err, &header):
		return "it does not speak TLS; see whether its URL begins with http:// instead"
	}
	return "TLS failed: " + legible.Printable(err.Error())
}
