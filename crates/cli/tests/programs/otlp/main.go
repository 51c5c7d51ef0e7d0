// Sends one profile three times with the collector's own library: over gRPC, over HTTP in protobuf
// and over HTTP in JSON, each for a service of its own. Its arguments are the address of the gRPC
// port and that of the HTTP port.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
)

// Interns what the collector's profiles refer to by index.
type builder struct {
	dictionary pprofile.ProfilesDictionary
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func (b builder) text(value string) int32 {
	return must(pprofile.SetString(b.dictionary.StringTable(), value))
}

func (b builder) attribute(key, value string) int32 {
	attribute := pprofile.NewKeyValueAndUnit()
	attribute.SetKeyStrindex(b.text(key))
	attribute.Value().SetStr(value)
	return must(pprofile.SetAttribute(b.dictionary.AttributeTable(), attribute))
}

func (b builder) location(name string, line int64) int32 {
	function := pprofile.NewFunction()
	function.SetNameStrindex(b.text(name))
	function.SetSystemNameStrindex(b.text(name))
	function.SetFilenameStrindex(b.text("/src/shop/main.go"))
	location := pprofile.NewLocation()
	location.AttributeIndices().Append(b.attribute("profile.frame.type", "go"))
	place := location.Lines().AppendEmpty()
	place.SetFunctionIndex(must(pprofile.SetFunction(b.dictionary.FunctionTable(), function)))
	place.SetLine(line)
	return must(pprofile.SetLocation(b.dictionary.LocationTable(), location))
}

func (b builder) stack(leafFirst ...int32) int32 {
	stack := pprofile.NewStack()
	stack.LocationIndices().Append(leafFirst...)
	return must(pprofile.SetStack(b.dictionary.StackTable(), stack))
}

// What an eBPF profiler sends: 20 ms a sample, 30 samples in one function and 10 in another.
func profiles(service string) pprofile.Profiles {
	all := pprofile.NewProfiles()
	b := builder{all.Dictionary()}
	// The first entry of each table means none.
	b.text("")
	b.dictionary.MappingTable().AppendEmpty()
	b.dictionary.LocationTable().AppendEmpty()
	b.dictionary.FunctionTable().AppendEmpty()
	b.dictionary.LinkTable().AppendEmpty()
	b.dictionary.AttributeTable().AppendEmpty()
	b.dictionary.StackTable().AppendEmpty()

	resource := all.ResourceProfiles().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", service)
	resource.Resource().Attributes().PutStr("deployment.environment.name", "test")
	scope := resource.ScopeProfiles().AppendEmpty()
	scope.Scope().SetName("shop")
	profile := scope.Profiles().AppendEmpty()
	profile.SetProfileID(pprofile.ProfileID([]byte("0123456789abcdef")))
	profile.SetTime(pcommon.NewTimestampFromTime(time.Now()))
	profile.SetDurationNano(uint64(time.Second))
	profile.SampleType().SetTypeStrindex(b.text("samples"))
	profile.SampleType().SetUnitStrindex(b.text("count"))
	profile.PeriodType().SetTypeStrindex(b.text("cpu"))
	profile.PeriodType().SetUnitStrindex(b.text("nanoseconds"))
	profile.SetPeriod(20_000_000)

	link := pprofile.NewLink()
	link.SetTraceID(pcommon.TraceID([]byte("fedcba9876543210")))
	link.SetSpanID(pcommon.SpanID([]byte("76543210")))
	linkIndex := must(pprofile.SetLink(b.dictionary.LinkTable(), link))
	root := b.location("main.main", 12)
	for _, leaf := range []struct {
		name  string
		line  int64
		count int64
	}{{"main.priceEverything", 34, 30}, {"main.fillBasket", 56, 10}} {
		sample := profile.Samples().AppendEmpty()
		sample.SetStackIndex(b.stack(b.location(leaf.name, leaf.line), root))
		sample.SetLinkIndex(linkIndex)
		sample.AttributeIndices().Append(b.attribute("thread.name", "clerk"))
		sample.Values().Append(leaf.count)
	}
	return all
}

func exportGRPC(address, service string) {
	connection := must(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())))
	defer connection.Close()
	client := pprofileotlp.NewGRPCClient(connection)
	request := pprofileotlp.NewExportRequestFromProfiles(profiles(service))
	response := must(client.Export(context.Background(), request, grpc.UseCompressor("gzip")))
	expectAll(response)
}

func exportHTTP(url, service, contentType string) {
	request := pprofileotlp.NewExportRequestFromProfiles(profiles(service))
	marshal, response := request.MarshalProto, pprofileotlp.NewExportResponse()
	unmarshal := response.UnmarshalProto
	if contentType == "application/json" {
		marshal, unmarshal = request.MarshalJSON, response.UnmarshalJSON
	}
	answer := must(http.Post(url, contentType, bytes.NewReader(must(marshal()))))
	body := must(io.ReadAll(answer.Body))
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != contentType {
		fmt.Fprintln(os.Stderr, service, answer.Status, answer.Header.Get("Content-Type"), string(body))
		os.Exit(1)
	}
	must(0, unmarshal(body))
	expectAll(response)
}

func expectAll(response pprofileotlp.ExportResponse) {
	partial := response.PartialSuccess()
	if partial.RejectedProfiles() != 0 || partial.ErrorMessage() != "" {
		fmt.Fprintln(os.Stderr, partial.RejectedProfiles(), "refused:", partial.ErrorMessage())
		os.Exit(1)
	}
}

func main() {
	grpcAddress, httpAddress := os.Args[1], os.Args[2]
	exportGRPC(grpcAddress, "shop.otlp.grpc")
	exportHTTP("http://"+httpAddress+"/v1development/profiles", "shop.otlp.http", "application/x-protobuf")
	exportHTTP("http://"+httpAddress+"/v1development/profiles", "shop.otlp.json", "application/json")
}
