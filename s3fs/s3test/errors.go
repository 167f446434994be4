package s3test

import (
	"encoding/xml"
	"net/http"
)

// apiError is an answer of S3 that refuses a request.
type apiError struct {
	status  int
	code    string
	message string
	detail  []element // further elements of the XML body
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

// statuses gives each error code its HTTP status, as in Amazon's list of error responses. Codes that are not here are 400.
var statuses = map[string]int{
	"AccessDenied":               http.StatusForbidden,
	"BucketAlreadyOwnedByYou":    http.StatusConflict,
	"BucketNotEmpty":             http.StatusConflict,
	"InvalidAccessKeyId":         http.StatusForbidden,
	"InvalidRange":               http.StatusRequestedRangeNotSatisfiable,
	"MissingContentLength":       http.StatusLengthRequired,
	"NoSuchBucket":               http.StatusNotFound,
	"NoSuchKey":                  http.StatusNotFound,
	"NoSuchUpload":               http.StatusNotFound,
	"NotImplemented":             http.StatusNotImplemented,
	"NotModified":                http.StatusNotModified,
	"PreconditionFailed":         http.StatusPreconditionFailed,
	"RequestTimeTooSkewed":       http.StatusForbidden,
	"SignatureDoesNotMatch":      http.StatusForbidden,
	"XAmzContentSHA256Mismatch":  http.StatusBadRequest,
	"ConditionalRequestConflict": http.StatusConflict,
}

// fault makes an apiError. detail holds pairs of element name and text.
func fault(code, message string, detail ...string) *apiError {
	e := &apiError{status: http.StatusBadRequest, code: code, message: message}
	if status, ok := statuses[code]; ok {
		e.status = status
	}
	for i := 0; i+1 < len(detail); i += 2 {
		e.detail = append(e.detail, element{XMLName: xml.Name{Local: detail[i]}, Text: detail[i+1]})
	}
	return e
}

func noSuchBucket(name string) *apiError {
	return fault("NoSuchBucket", "The specified bucket does not exist", "BucketName", name)
}

func noSuchKey(key string) *apiError {
	return fault("NoSuchKey", "The specified key does not exist.", "Key", key)
}

func noSuchUpload(id string) *apiError {
	return fault("NoSuchUpload", "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.", "UploadId", id)
}

func preconditionFailed(header string) *apiError {
	return fault("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", "Condition", header)
}

func invalidArgument(message, name, value string) *apiError {
	return fault("InvalidArgument", message, "ArgumentName", name, "ArgumentValue", value)
}

func malformedXML() *apiError {
	return fault("MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema")
}

// element is an XML element whose name is known at run time only.
type element struct {
	XMLName xml.Name
	Text    string `xml:",chardata"`
}

type errorBody struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	Detail    []element
	Resource  string
	RequestID string `xml:"RequestId"`
}

// errorXML renders the body that goes with an error code.
func errorXML(c *call, code, message string, detail []element) []byte {
	return marshal(errorBody{
		Code: code, Message: message, Detail: detail, Resource: c.http.URL.Path, RequestID: c.id,
	})
}

func (e *apiError) response(c *call) *response {
	res := newResponse(e.status)
	res.code = e.code
	if e.status == http.StatusNotModified {
		return res // by HTTP's rules without a body
	}
	return res.xml(errorXML(c, e.code, e.message, e.detail))
}
