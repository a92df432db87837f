package hookserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/webhook"
)

const attackedSecret = "a secret that strangers do not know"

// attackedServer is a server with a webhook receiver and a consumer.
type attackedServer struct {
	*Server
	hooks    *webhook.Receiver
	consumer *consumer.Consumer[*memstore.Tx]
}

func newAttackedServer(t *testing.T, o Options, set func(*webhook.Config)) *attackedServer {
	t.Helper()
	s := openServer(t, o)
	c := webhook.Config{Name: "a", Scheme: webhook.GitHub(), Secrets: []string{attackedSecret}, MaxBody: 1 << 20}
	if set != nil {
		set(&c)
	}
	hooks, err := webhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	behind, err := consumer.New(memstore.New(), func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
		return tx.Add(m.Identity.ID, 1)
	}, consumer.Config{Name: "a", Source: hooks, Identity: identity.By("body:/id"), Logger: slog.New(slog.DiscardHandler),
		Strategy: consumer.StrategyInbox, AckOnReceipt: true, Lanes: consumer.LanesNone})
	if err != nil {
		t.Fatal(err)
	}
	var running worker.Group
	ctx, stop := context.WithCancel(context.Background())
	running.Go(func() { _ = behind.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	s.Handle("/a", hooks)
	return &attackedServer{s, hooks, behind}
}

// signedBy returns the header with GitHub's signature of body.
func signedBy(secret, body string) string {
	h := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(h, body)
	return "X-Hub-Signature-256: sha256=" + hex.EncodeToString(h.Sum(nil)) + "\r\n"
}

func rawRequest(headers, body string) string {
	return "POST /a HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n" + body
}

// sendAndReadStatuses sends a request and returns the statuses of all responses on the connection. The
// parameter answers is the number of responses that must arrive while the client can still send. Further
// responses may arrive after the client has closed its sending side.
func sendAndReadStatuses(t *testing.T, s *Server, request string, answers int) (all []int) {
	t.Helper()
	c := dial(t, s)
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	for {
		if len(all) == answers {
			_ = c.(*net.TCPConn).CloseWrite()
		}
		a, err := http.ReadResponse(in, nil)
		if err != nil {
			return all
		}
		_, _ = io.Copy(io.Discard, a.Body)
		all = append(all, a.StatusCode)
	}
}

func TestInvalidRequests(t *testing.T) {
	const body = `{"id":"evt_1"}`
	sum, length := signedBy(attackedSecret, body), fmt.Sprintf("Content-Length: %d\r\n", len(body))
	var bytewise strings.Builder
	for _, b := range []byte(body) {
		fmt.Fprintf(&bytewise, "1;x=y\r\n%c\r\n", b)
	}
	for _, c := range []struct {
		name, request string
		want          string
		stored        int
		cut           bool // the client closes the connection before the end of the request
	}{
		{"F3_a_right_one", rawRequest(sum+length, body), "[200]", 1, false},
		{"F3_a_right_one_and_a_copy_on_one_connection", rawRequest(sum+length, body) + rawRequest(sum+length, body), "[200 200]", 1, false},
		{"F3_of_the_old_protocol", strings.Replace(rawRequest(sum+length, body), "1.1", "1.0", 1), "[200]", 1, false},
		{"F3_a_length_that_is_too_long", rawRequest(sum+"Content-Length: 99\r\n", body), "[400]", 0, true},
		{"F3_a_length_that_is_too_short", rawRequest(sum+"Content-Length: 13\r\n", body), "[401]", 0, false},
		{"F3_no_length", rawRequest(sum, body), "[401]", 0, false},
		{"F3_two_lengths", rawRequest(sum+length+"Content-Length: 13\r\n", body), "[400]", 0, false},
		{"F3_a_length_that_is_no_number", rawRequest(sum+"Content-Length: +14\r\n", body), "[400]", 0, false},
		{"F3_a_length_beyond_the_limit", rawRequest(sum+"Content-Length: 1048577\r\n", body), "[413]", 0, false},
		{"F3_a_length_of_a_petabyte", rawRequest(sum+"Content-Length: 1000000000000000\r\n", body), "[413]", 0, false},
		{"F3_chunks_of_one_byte_with_extensions", rawRequest(sum+"Transfer-Encoding: chunked\r\n", bytewise.String()+"0\r\n\r\n"), "[200]", 1, false},
		{"F3_chunks_without_an_end", rawRequest(sum+"Transfer-Encoding: chunked\r\n", bytewise.String()), "[400]", 0, true},
		{"F3_chunks_of_no_size", rawRequest(sum+"Transfer-Encoding: chunked\r\n", "zz\r\n"+body), "[400]", 0, false},
		{"F3_chunks_and_gzip", rawRequest(sum+"Transfer-Encoding: gzip, chunked\r\n", bytewise.String()+"0\r\n\r\n"), "[501]", 0, false},
		{"F3_gzip", rawRequest(sum+length+"Content-Encoding: gzip\r\n", body), "[415]", 0, false},
		{"F3_gzip_behind_identity", rawRequest(sum+length+"Content-Encoding: identity\r\nContent-Encoding: gzip\r\n", body), "[415]", 0, false},
		{"F3_the_signature_twice", rawRequest(sum+sum+length, body), "[401]", 0, false},
		{"F3_two_signatures_in_one_header", rawRequest(strings.TrimSuffix(sum, "\r\n")+", sha256=00\r\n"+length, body), "[401]", 0, false},
		{"F3_the_signature_of_another_scheme", rawRequest("Stripe-Signature: t=1,v1=00\r\n"+length, body), "[401]", 0, false},
		{"F3_the_signature_behind_the_body", rawRequest("Trailer: X-Hub-Signature-256\r\nTransfer-Encoding: chunked\r\n", bytewise.String()+"0\r\n"+sum+"\r\n"), "[401]", 0, false},
		{"F3_headers_beyond_the_limit", rawRequest(sum+length+"X-Long: "+strings.Repeat("x", 64<<10)+"\r\n", body), "[431]", 0, false},
		{"F3_another_host_header_too", rawRequest(sum+length+"Host: b\r\n", body), "[400]", 0, false},
		{"F3_one_that_is_refused_and_a_right_one_behind_it", rawRequest(length, body) + rawRequest(sum+length, body), "[401]", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newAttackedServer(t, Options{}, nil)
			answers := strings.Count(c.want, " ") + 1
			if c.cut {
				answers = 0
			}
			if got := fmt.Sprint(sendAndReadStatuses(t, s.Server, c.request, answers)); got != c.want {
				t.Errorf("the responses are %s, want %s", got, c.want)
			}
			if got := int(s.hooks.Count(webhook.Received)); got != c.stored {
				t.Errorf("%d were stored, want %d", got, c.stored)
			}
			if left, _ := s.hooks.Info().Ages(); !left[0].Oldest.IsZero() {
				t.Errorf("still in memory: %+v", left)
			}
		})
	}
}

func TestRejectedClientsHoldNoConnection(t *testing.T) {
	t.Run("F3_a_stranger_who_keeps_the_connection_open_keeps_nobody_out", func(t *testing.T) {
		const body = `{"id":"evt_1"}`
		s := newAttackedServer(t, Options{Connections: 1}, nil)
		for _, request := range []string{rawRequest("Content-Length: 0\r\n", ""), rawRequest(signedBy("another secret than theirs", body)+"Content-Length: 14\r\n", body), "GET /a HTTP/1.1\r\nHost: a\r\n\r\n", "GET /other HTTP/1.1\r\nHost: a\r\n\r\n"} {
			if got := sendRequest(t, dial(t, s.Server), request); got/100 != 4 { // each request uses a new connection, which the client keeps open
				t.Errorf("%d", got)
			}
		}
		c := dial(t, s.Server)
		_ = c.SetDeadline(time.Now().Add(idleWithin / 2))
		if got := sendRequest(t, c, rawRequest(signedBy(attackedSecret, body)+"Content-Length: 14\r\n", body)); got != 200 {
			t.Errorf("%d", got)
		}
	})
}

func TestMoreConnectionsThanPlaces(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "tls": true} {
		t.Run("F3_connections_that_stand_idle_make_room_for_others/"+name, func(t *testing.T) {
			o := Options{Connections: 20}
			if secure {
				o.Cert, o.Key = certify(t, t.TempDir(), 1)
			}
			s := newAttackedServer(t, o, nil)
			var all sync.WaitGroup
			for i := range 60 { // each machine of the provider keeps a connection open
				body := fmt.Sprintf(`{"id":"evt_%d"}`, i)
				c := dial(t, s.Server)
				_ = c.SetDeadline(time.Now().Add(idleWithin / 2))
				if secure {
					c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
				}
				all.Go(func() {
					request := rawRequest(signedBy(attackedSecret, body)+fmt.Sprintf("Content-Length: %d\r\n", len(body)), body)
					if _, err := io.WriteString(c, request); err != nil {
						t.Error(err)
						return
					}
					a, err := http.ReadResponse(bufio.NewReader(c), nil)
					if err != nil || a.StatusCode != 200 {
						t.Errorf("%s: %v, %v", body, a, err)
					}
				})
			}
			all.Wait()
			if got := s.hooks.Count(webhook.Received); got != 60 {
				t.Errorf("%d were received", got)
			}
		})
	}
}

func TestHTTP2(t *testing.T) {
	t.Run("F3_a_hundred_requests_on_one_connection_and_one_whose_body_does_not_come", func(t *testing.T) {
		cert, key := certify(t, t.TempDir(), 1)
		s := newAttackedServer(t, Options{Cert: cert, Key: key, Connections: 1}, func(c *webhook.Config) { c.ReadWithin = 300 * time.Millisecond })
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		send := func(body io.Reader, signature string) int {
			q, err := http.NewRequest(http.MethodPost, "https://"+s.Address()+"/a", body)
			if err != nil {
				t.Error(err)
				return 0
			}
			_, value, _ := strings.Cut(strings.TrimSpace(signature), ": ")
			q.Header.Set("X-Hub-Signature-256", value)
			a, err := transport.RoundTrip(q)
			if err != nil {
				t.Error(err)
				return 0
			}
			defer a.Body.Close()
			if _, err := io.Copy(io.Discard, a.Body); err != nil || a.ProtoMajor != 2 {
				t.Errorf("%s: %v", a.Proto, err)
			}
			return a.StatusCode
		}
		var all sync.WaitGroup
		reader, writer := io.Pipe()
		all.Go(func() {
			if got := send(reader, signedBy(attackedSecret, "")); got != 400 {
				t.Errorf("without a body: %d", got)
			}
		})
		for i := range 100 {
			body := fmt.Sprintf(`{"id":"evt_%d"}`, i%50)
			all.Go(func() {
				got := 400
				for got == 400 { // on a busy machine, the request itself can exceed the timeout
					got = send(bytes.NewReader([]byte(body)), signedBy(attackedSecret, body))
				}
				if got != 200 {
					t.Errorf("%s: %d", body, got)
				}
			})
		}
		all.Wait()
		_ = writer.Close()
		if a, b, c := s.hooks.Count(webhook.Received), s.hooks.Count(webhook.Duplicate), s.hooks.Count(webhook.Incomplete); a != 50 || b != 50 || c == 0 {
			t.Errorf("%d received, %d duplicates, %d incomplete", a, b, c)
		}
	})
}
