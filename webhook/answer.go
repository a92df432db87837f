package webhook

import (
	"encoding/json"
	"net/http"
)

// answer is the HTTP answer for a Fate.
type answer struct {
	status int
	// The fields title and detail are fields of the problem document; they are empty for the status 200.
	title, detail string
	// retryable means that the request may be sent again after a second.
	retryable bool
	// closeConnection means that the connection is closed.
	closeConnection bool
}

// The text does not say why a signature is not accepted, so that an attacker learns nothing about secrets or clocks.
const refused = "The webhook's signature is not accepted"

var answers = [fates]answer{
	Received:  {status: http.StatusOK},
	Duplicate: {status: http.StatusOK},
	Parked:    {status: http.StatusOK},
	Ended:     {status: http.StatusOK},
	NotPost: {status: http.StatusMethodNotAllowed, title: "A webhook is a POST",
		detail: "send a POST"},
	Encoded: {status: http.StatusUnsupportedMediaType, title: "The body has a content encoding",
		detail: "send the bytes that were signed, without Content-Encoding"},
	NotSigned: {status: http.StatusUnauthorized, title: refused,
		detail: "a header is missing that the configured scheme needs"},
	Malformed: {status: http.StatusUnauthorized, title: refused,
		detail: "the signature headers cannot be parsed, or appear twice"},
	Forged: {status: http.StatusUnauthorized, title: refused,
		detail: "the signature of the body matches no configured secret"},
	Old: {status: http.StatusUnauthorized, title: refused,
		detail: "the signed time is too far from now"},
	TooLarge: {status: http.StatusRequestEntityTooLarge, title: "The body is too large",
		detail: "nothing was stored"},
	Incomplete: {status: http.StatusBadRequest, title: "The body did not arrive",
		detail: "it ended early, or came too slowly; nothing was stored"},
	Busy: {status: http.StatusTooManyRequests, title: "Too many webhooks are being processed",
		detail: "nothing of this one was stored; send it again later", retryable: true},
	Crowded: {status: http.StatusTooManyRequests, title: "Too many webhooks of this address are being read",
		detail: "nothing of this one was stored; send it again later", retryable: true, closeConnection: true},
	Unavailable: {status: http.StatusServiceUnavailable, title: "The webhook could not be stored in time",
		detail: "send it again later; if it was stored after all, its effect happens once", retryable: true},
	Gone: {status: http.StatusServiceUnavailable, title: "The client disconnected before the answer",
		detail: "send it again later; if it was stored after all, its effect happens once", retryable: true},
}

func (a answer) write(w http.ResponseWriter, f Fate) {
	w.Header().Set("Cache-Control", "no-store")
	if a.status == http.StatusOK {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"result":"` + f.String() + "\"}\n")) // a client that does not get the answer sends the request again
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	if a.retryable {
		w.Header().Set("Retry-After", "1")
	}
	if !a.retryable || a.closeConnection {
		// The client may try again with a new connection. An open connection would occupy a place in the
		// server.
		w.Header().Set("Connection", "close")
	}
	if a.status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", http.MethodPost)
	}
	body, _ := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Code   string `json:"code"`
	}{"about:blank", a.title, a.status, a.detail, "webhook-" + f.String()}) // strings and a number
	w.WriteHeader(a.status)
	_, _ = w.Write(append(body, '\n'))
}
