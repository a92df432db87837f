package proof

import (
	"net"
	"strconv"

	"github.com/semel-go/semel/internal/freeport"
)

// FreeAddress returns a free address of this machine.
func FreeAddress() (string, error) {
	port, err := freeport.Choose()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}
