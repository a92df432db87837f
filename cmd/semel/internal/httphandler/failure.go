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

// failure is the error of a call without a response. The text is Semel's own, because errors of net/http can
// quote the response.
type failure struct {
	text string
	err  error
}

func (e *failure) Error() string { return e.text }
func (e *failure) Unwrap() error { return e.err }

// failureResult returns the result of a message after a call without a response. If a part of the request
// was sent, the outcome is unknown.
func (h *Handler) failureResult(ctx context.Context, c *call, err error) error {
	sent := c.hasSent()
	why := h.failureCause(ctx, err, sent)
	if sent {
		return semel.Unknown(&failure{"the outcome of the call to " + h.host + " is unknown: " + why + "; " + h.describeRetry(), err})
	}
	return semel.Retry(&failure{"nothing was sent to " + h.host + ": " + why, err})
}

// describeRetry describes a further call after an unknown outcome. The text does not promise a further
// call, because the message may have no further attempt.
func (h *Handler) describeRetry() string {
	switch {
	case h.config.MayBeLost:
		return "it carries no key and is not made again"
	case h.config.NoKey:
		return "it carries no key, so another call may apply it twice"
	}
	return "another call uses the same key and is made only within the window"
}

func (h *Handler) failureCause(ctx context.Context, err error, sent bool) string {
	cause := context.Cause(ctx)
	var operation *net.OpError
	var handshake *handshakeError
	switch {
	case errors.Is(cause, errTimeout):
		return "no complete response arrived within " + legible.Span(h.config.Timeout)
	case cause != nil:
		return "the call was cancelled by this process"
	case errors.As(err, &handshake):
		return h.explainTLS(handshake.err)
	case errors.As(err, &operation) && (!sent || operation.Op == "remote error"): // the server sent a TLS alert
		return legible.Printable(operation.Error())
	case operation != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errNotAgain):
		return "the connection ended before the response was complete"
	}
	return "the response is not valid HTTP"
}

// explainTLS explains a failed TLS handshake.
func (h *Handler) explainTLS(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var header tls.RecordHeaderError
	switch {
	case errors.As(err, &name):
		return "its certificate is for another host; use a host name of the certificate in the URL"
	case errors.As(err, &authority):
		return "its certificate is from an unknown authority; set tls: {ca: FILE}"
	case errors.As(err, &invalid):
		return "its certificate is not valid: " + legible.Printable(invalid.Error())
	case errors.As(err, &header):
		return "it does not speak TLS; check whether the URL should begin with http://"
	}
	return "TLS failed: " + legible.Printable(err.Error())
}
