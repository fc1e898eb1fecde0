package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	_ "github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server" // registers the description of the protocol
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Process is the provider as a process of its own, spoken to as a core does. It is
// for what no core at hand asks for.
type Process struct {
	t       testing.TB
	conn    *grpc.ClientConn
	service protoreflect.ServiceDescriptor
}

// StartProcess starts the provider; the test's end stops it.
func StartProcess(t testing.TB) *Process {
	t.Helper()
	p := &Process{t: t}
	described, err := protoregistry.GlobalFiles.FindDescriptorByName("tfplugin6.Provider")
	if err != nil {
		t.Fatal(err)
	}
	p.service = described.(protoreflect.ServiceDescriptor)
	cmd := exec.Command(filepath.Join(binaries(t), "terraform-provider-libvirt"))
	cmd.Env = os.Environ()
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			MagicCookieKey: "TF_PLUGIN_MAGIC_COOKIE", MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
		},
		VersionedPlugins: map[int]plugin.PluginSet{6: {"provider": connection{}}},
		Cmd:              cmd, AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, AutoMTLS: true, Logger: hclog.NewNullLogger(),
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32))},
	})
	t.Cleanup(client.Kill)
	wire, err := client.Client()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := wire.Dispense("provider")
	if err != nil {
		t.Fatal(err)
	}
	p.conn = conn.(*grpc.ClientConn)
	return p
}

// connection is a plugin of which the connection alone is wanted.
type connection struct{}

func (connection) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("nothing is served here")
}

func (connection) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

func (connection) Server(*plugin.MuxBroker) (any, error) {
	return nil, errors.New("nothing is served here")
}

func (connection) Client(*plugin.MuxBroker, *rpc.Client) (any, error) {
	return nil, errors.New("only gRPC is spoken here")
}

// Ask calls a method of the protocol. Request and answer are what encoding/json
// makes of messages with the names of the protocol's description; an answer of
// several messages is a list.
func (p *Process) Ask(method string, request, answer any) {
	p.t.Helper()
	if err := p.ask(method, request, answer); err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
}

func (p *Process) ask(method string, request, answer any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	described := p.service.Methods().ByName(protoreflect.Name(method))
	if described == nil {
		return errors.New("the protocol has no such method")
	}
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	in := dynamicpb.NewMessage(described.Input())
	if err := protojson.Unmarshal(text, in); err != nil {
		return fmt.Errorf("write the request: %w", err)
	}
	stream, err := p.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, fmt.Sprintf("/%s/%s", p.service.FullName(), method))
	if err != nil {
		return err
	}
	if err := errors.Join(stream.SendMsg(in), stream.CloseSend()); err != nil {
		return err
	}
	var messages [][]byte
	for {
		out := dynamicpb.NewMessage(described.Output())
		if err := stream.RecvMsg(out); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(out)
		if err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		messages = append(messages, text)
	}
	text = bytes.Join(messages, []byte(","))
	if described.IsStreamingServer() {
		text = append(append([]byte("["), text...), ']')
	}
	return json.Unmarshal(text, answer)
}
