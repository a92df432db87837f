package proof

import (
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/semel-go/semel/internal/freeport"
)

// FreeAddress returns an address on this machine whose port is free.
func FreeAddress() (string, error) {
	port, err := freeport.Choose()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// Ready reports whether the process that serves its health at an address is ready.
func Ready(address string) bool {
	answer, err := http.Get("http://" + address + "/readyz")
	return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// Serve serves HTTP at a free address of this machine until end is called.
func Serve(h http.Handler) (address string, end func()) {
	l := Must(net.Listen("tcp", "127.0.0.1:0"))
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(l)
	}()
	return l.Addr().String(), func() {
		_ = server.Close()
		<-over
	}
}
