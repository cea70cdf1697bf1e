package api

import (
	"fmt"
	"os"
	"strings"

	"github.com/stallspan/stallspan/internal/trust"
)

// Variables of a client that reaches its server over TCP.
const (
	EndpointVariable = "STALLSPAN_ENDPOINT"   // host:port
	TokenVariable    = "STALLSPAN_TOKEN_FILE" //nolint:gosec // no token, but the variable that names its file
)

// minToken is the least length of a token, in bytes.
const minToken = 16

// ReadToken reads the token of a server on TCP from a file. It is nil
// without a file. setting is what the user calls the file.
func ReadToken(setting, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	token, err := trust.Secret(setting, path)
	switch {
	case err != nil:
		return nil, err
	case len(token) < minToken:
		return nil, fmt.Errorf("%s %s has %d characters: write at least %d there, as openssl rand -hex 32 does", setting,
			path, len(token), minToken)
	case strings.Trim(string(token), tokenCharacters) != "":
		return nil, fmt.Errorf("%s %s has other characters than letters, digits and -._~+/=: choose another text", setting,
			path)
	}
	return token, nil
}

// tokenCharacters may be in a token (RFC 6750, section 2.1).
const tokenCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

// Requiring makes the server refuse requests over TCP without a token. Who has it has the rights of the server's user.
// Call it before Serve.
func (s *Server) Requiring(token []byte) *Server {
	s.token = token
	return s
}

// FromEnvironment returns a client of the server that the environment names: on a unix socket, or else on TCP.
func FromEnvironment() (*Client, error) {
	endpoint := os.Getenv(EndpointVariable)
	if endpoint == "" || os.Getenv(SocketVariable) != "" { // within run, its socket
		return NewClient(ClientSocket()), nil
	}
	address, err := Endpoint(endpoint)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EndpointVariable, err)
	}
	token, err := ReadToken(TokenVariable, os.Getenv(TokenVariable))
	if err != nil {
		return nil, err
	}
	return newTCPClient(address, token), nil
}
