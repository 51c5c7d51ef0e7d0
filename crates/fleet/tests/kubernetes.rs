//! Documents as manifests: every field is one that Kubernetes knows, and says what the document says.
#![cfg(feature = "kubernetes")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use candela_fleet::FleetDocument;
use candela_fleet::kubernetes::KubernetesObject;
use candela_fleet::kubernetes::Manifest;
use candela_fleet::kubernetes::ManifestOptions;
use candela_fleet::wanted_daemons;
use serde_json::Value;
use serde_json::json;

const CONFIG: &str = "buffers { size_kb: 1024 } data_sources { config { name: \"linux.perf\" } } \
    trigger_config { trigger_mode: CLONE_SNAPSHOT trigger_timeout_ms: 1000 triggers { name: \"traces\" stop_delay_ms: 1 } }";

fn options() -> ManifestOptions {
    ManifestOptions {
        namespace: "observability".to_owned(),
        image: "registry.example/candela:1.2".to_owned(),
        server: "https://profiles.example".to_owned(),
        capabilities: vec!["BPF".to_owned(), "PERFMON".to_owned()],
        ..ManifestOptions::default()
    }
}

fn document(json: &Value) -> FleetDocument {
    let accepted = FleetDocument::read(&json.to_string());
    accepted
        .unwrap_or_else(|problems| panic!("{problems}"))
        .document
}

fn render(json: &Value, options: &ManifestOptions) -> Vec<Value> {
    let manifest = Manifest::render(&document(json), options).unwrap();
    let objects = manifest.objects.iter();
    objects
        .map(|object| serde_json::to_value(object).unwrap())
        .collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects
        .iter()
        .filter(|object| object["kind"] == kind)
        .collect()
}

fn collector(more: Value) -> Value {
    let mut daemon = json!({"perf_collector": {"export_to": "s3://profiles", "bucket_subdirectory": "perf-data"}});
    if let Value::Object(more) = more {
        daemon.as_object_mut().unwrap().extend(more);
    }
    daemon
}

fn perfetto(more: Value) -> Value {
    let mut daemon = json!({"perfetto_daemon": {
        "config_text": CONFIG, "export_to": "gs://traces", "trigger": "PERFETTO_TRIGGER_HTTP", "trigger_name": "traces",
    }});
    if let Value::Object(more) = more {
        daemon.as_object_mut().unwrap().extend(more);
    }
    daemon
}

#[test]
fn a_daemon_becomes_a_daemon_set_of_its_name() {
    let limited = collector(json!({
        "image_override": "registry.example/other:3",
        "request": {"cpu": 2, "memory": "1G", "ephemeral_storage": "2Gi"},
        "limit": {"memory": "2G"},
    }));
    let json = json!({"observability_daemons": [limited, perfetto(json!({}))]});
    let objects = render(&json, &options());
    let kinds: Vec<&str> = objects
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["Namespace", "ServiceAccount", "DaemonSet", "DaemonSet"]
    );
    let sets = of_kind(&objects, "DaemonSet");
    let document = document(&json);
    for (set, wanted) in sets.iter().zip(wanted_daemons(&document)) {
        assert_eq!(set["metadata"]["name"], wanted.id.as_str());
        assert_eq!(set["metadata"]["namespace"], "observability");
        let template = &set["spec"]["template"];
        let selected = set["spec"]["selector"]["matchLabels"].as_object().unwrap();
        for (key, value) in selected {
            assert_eq!(&template["metadata"]["labels"][key], value);
        }
        assert_eq!(template["spec"]["hostPID"], true);
        assert_eq!(template["spec"]["enableServiceLinks"], false);
        let item = json!({"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}});
        let volume = json!({"name": "pod", "downwardAPI": {"items": [item]}});
        let volumes = template["spec"]["volumes"].as_array().unwrap();
        assert!(volumes.contains(&volume), "{volumes:?}");
        let mount = json!({"name": "pod", "mountPath": "/etc/candela-pod", "readOnly": true});
        let mounts = template["spec"]["containers"][0]["volumeMounts"].as_array();
        assert!(mounts.unwrap().contains(&mount), "{mounts:?}");
        let file = json!({"name": "CANDELA_AGENT__KUBERNETES__OWN_LABELS_FILE", "value": "/etc/candela-pod/labels"});
        let environment = template["spec"]["containers"][0]["env"].as_array().unwrap();
        assert!(environment.contains(&file), "{environment:?}");
        let container = &template["spec"]["containers"][0];
        let names = json!({"drop": ["ALL"], "add": ["BPF", "PERFMON"]});
        assert_eq!(container["securityContext"]["capabilities"], names);
        assert_eq!(
            container["securityContext"]["allowPrivilegeEscalation"],
            false
        );
        let own = json!({"name": "CANDELA_AGENT__FLEET_DAEMON", "value": wanted.id.as_str()});
        assert!(container["env"].as_array().unwrap().contains(&own));
    }
    let has_port = |index: usize| {
        let container = &sets[index]["spec"]["template"]["spec"]["containers"][0];
        let port = json!({"name": "CHALK_PERFETTO_DAEMON_PORT", "value": "3565"});
        container["env"].as_array().unwrap().contains(&port)
    };
    assert!(!has_port(0) && has_port(1), "of a trigger over HTTP");
    let container = |index: usize| &sets[index]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container(0)["image"], "registry.example/other:3");
    assert_eq!(container(1)["image"], "registry.example/candela:1.2");
    let given = json!({
        "requests": {"cpu": "2", "memory": "1G", "ephemeral-storage": "2Gi"},
        "limits": {"memory": "2G"},
    });
    assert_eq!(container(0)["resources"], given);
    let usual = json!({"requests": {"cpu": "25m", "memory": "64Mi"}});
    assert_eq!(container(1)["resources"], usual);
}

#[test]
fn every_field_is_one_that_kubernetes_knows() {
    let filtered = json!({"perf_collector": {"export_to": "s3://profiles", "process_filter": {"pod_label": ["app=shop"]}}});
    let json = json!({
        "common_persistence_specs": {"service_account_name": "profiler", "google_cloud_project": "shop"},
        "observability_daemons": [filtered, perfetto(json!({"limit": {"cpu": "1", "ephemeral_storage": "1Gi"}}))],
    });
    let all = ManifestOptions {
        tenant: Some("shop".to_owned()),
        token_secret: Some("candela".to_owned()),
        role_arn: Some("arn:aws:iam::123456789012:role/profiler".to_owned()),
        environment: vec![("AWS_REGION".to_owned(), "eu-central-1".to_owned())],
        ..options()
    };
    let manifest = Manifest::render(&document(&json), &all).unwrap();
    let mut kinds = Vec::new();
    for object in &manifest.objects {
        // The types leave out what they do not know when they read, so that what comes back differs.
        let written = serde_json::to_value(object).unwrap();
        let read = |value: Value| match object {
            KubernetesObject::Namespace(_) => {
                KubernetesObject::Namespace(serde_json::from_value(value).unwrap())
            }
            KubernetesObject::ServiceAccount(_) => {
                KubernetesObject::ServiceAccount(serde_json::from_value(value).unwrap())
            }
            KubernetesObject::ClusterRole(_) => {
                KubernetesObject::ClusterRole(serde_json::from_value(value).unwrap())
            }
            KubernetesObject::ClusterRoleBinding(_) => {
                KubernetesObject::ClusterRoleBinding(serde_json::from_value(value).unwrap())
            }
            KubernetesObject::DaemonSet(_) => {
                KubernetesObject::DaemonSet(serde_json::from_value(value).unwrap())
            }
        };
        let again = read(written.clone());
        assert_eq!(&again, object);
        assert_eq!(serde_json::to_value(&again).unwrap(), written);
        let mut wrong = written.clone();
        wrong["spek"] = json!({});
        assert_ne!(serde_json::to_value(read(wrong.clone())).unwrap(), wrong);
        kinds.push(written["kind"].as_str().unwrap().to_owned());
        assert_eq!(
            written["metadata"]["labels"]["app.kubernetes.io/part-of"],
            "candela-fleet"
        );
    }
    let expected = [
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "DaemonSet",
        "DaemonSet",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn the_account_stands_for_one_of_each_cloud() {
    let annotations = |common: Value, options: &ManifestOptions| {
        let objects = render(&json!({"common_persistence_specs": common}), options);
        let account = of_kind(&objects, "ServiceAccount")[0]["metadata"].clone();
        (
            account["name"].as_str().unwrap().to_owned(),
            account["annotations"].clone(),
        )
    };
    let none = annotations(json!({}), &options());
    assert_eq!(none, ("candela-fleet".to_owned(), Value::Null));
    let common = json!({"service_account_name": "profiler", "google_cloud_project": "shop"});
    let google = json!({"iam.gke.io/gcp-service-account": "profiler@shop.iam.gserviceaccount.com"});
    let named = ("profiler".to_owned(), google.clone());
    assert_eq!(annotations(common.clone(), &options()), named);
    let address = json!({"service_account_name": "profiler@shop.iam.gserviceaccount.com"});
    assert_eq!(annotations(address, &options()), named);
    let amazon = ManifestOptions {
        role_arn: Some("arn:aws:iam::123456789012:role/profiler".to_owned()),
        google_service_account: Some("other@shop.iam.gserviceaccount.com".to_owned()),
        ..options()
    };
    let both = json!({
        "eks.amazonaws.com/role-arn": "arn:aws:iam::123456789012:role/profiler",
        "iam.gke.io/gcp-service-account": "other@shop.iam.gserviceaccount.com",
    });
    assert_eq!(annotations(common, &amazon), ("profiler".to_owned(), both));
    let odd =
        document(&json!({"common_persistence_specs": {"service_account_name": "My Account"}}));
    let problems = Manifest::render(&odd, &options()).unwrap_err().to_string();
    let begins = "common_persistence_specs.service_account_name: \"My Account\" is not the name of a service account";
    assert!(problems.starts_with(begins), "{problems}");
}

#[test]
fn what_rests_is_not_rendered_and_what_has_no_place_is_told() {
    let sleeper = collector(json!({"request": {"storage": "1Gi"}}));
    let worker = perfetto(json!({"keep_running_when_suspended": true}));
    let json = json!({"suspended": true, "observability_daemons": [sleeper, worker]});
    let manifest = Manifest::render(&document(&json), &options()).unwrap();
    let notes: Vec<String> = manifest.notes.iter().map(ToString::to_string).collect();
    let expected = [
        "observability_daemons[0].request.storage: is left out: a DaemonSet claims no volume; write ephemeral_storage for room on the node",
        "observability_daemons[0]: rests while the document is suspended, and is not rendered",
    ];
    assert_eq!(notes, expected);
    let objects = render(&json, &options());
    let sets = of_kind(&objects, "DaemonSet");
    assert_eq!(sets.len(), 1);
    let component = &sets[0]["metadata"]["labels"]["app.kubernetes.io/component"];
    assert_eq!(component, "perfetto-daemon");
}

#[test]
fn who_looks_at_pods_may_and_nobody_else() {
    let filtered = json!({"perf_collector": {"export_to": "s3://profiles", "process_filter": {"pod_label": ["app=shop"]}}});
    let objects = render(
        &json!({"observability_daemons": [filtered, perfetto(json!({}))]}),
        &options(),
    );
    let sets = of_kind(&objects, "DaemonSet");
    let mounts =
        |set: &Value| set["spec"]["template"]["spec"]["automountServiceAccountToken"] == true;
    assert!(mounts(sets[0]) && !mounts(sets[1]));
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]);
    assert_eq!(of_kind(&objects, "ClusterRole")[0]["rules"], rules);
    let subject = &of_kind(&objects, "ClusterRoleBinding")[0]["subjects"][0];
    assert_eq!(subject["name"], "candela-fleet");
    assert_eq!(subject["namespace"], "observability");
}
