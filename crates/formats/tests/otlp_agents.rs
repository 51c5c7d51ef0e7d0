//! Which agent sends a request, and of which host it reports.

use crate::common::otlp_request::ebpf_request;
use candela_formats::AttributeValue;
use candela_formats::ExportProfilesServiceRequest;
use candela_formats::OtlpOptions;
use candela_formats::ReadOptions;
use candela_formats::Report;
use candela_formats::decode_otlp;
use candela_formats::encode_otlp;
use candela_model::Profile;

fn decode(request: &ExportProfilesServiceRequest) -> (Profile, Report) {
    decode_otlp(request, &ReadOptions::default()).unwrap()
}

#[test]
fn an_agent_is_where_it_says_although_its_series_are_of_elsewhere() {
    let (profile, _) = decode(&ebpf_request());
    let text = |text: &str| AttributeValue::Text(text.to_owned());
    let options = OtlpOptions {
        scope_name: "candela".to_owned(),
        resource_attributes: vec![("host.name".to_owned(), text("target"))],
        attributes: vec![("candela.agent.host".to_owned(), text("agent"))],
        ..OtlpOptions::default()
    };
    let (again, report) = decode(&encode_otlp(&profile, &options));
    assert_eq!(report.agents[0].host, "agent");
    assert_eq!(again.series[0].labels.get("host"), Some("target"));
}
