//! What is known of a container.

use std::collections::HashMap;

use crate::labels::PodContainer;

/// The longest text of a runtime that is kept, bytes; labels are cut there anyhow.
const LONGEST_TEXT: usize = 1024;

/// Labels that the kubelet gives to containers and sandboxes.
const POD_NAME: &str = "io.kubernetes.pod.name";
const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
const CONTAINER_NAME: &str = "io.kubernetes.container.name";

/// Labels of pods that name their application, the recommended one first.
pub(super) const APP_LABELS: [&str; 3] = ["app.kubernetes.io/name", "app", "k8s-app"];

/// What a runtime tells about a container. Texts that it does not tell are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerFacts {
    /// Its name, in Kubernetes that of the pod's specification.
    pub name: String,
    /// The image as it was asked for: `registry/name:tag`.
    pub image: String,
    /// The pod that it is part of.
    pub pod: Option<PodContainer>,
    /// What the pod's labels say it is an instance of.
    pub app: Option<String>,
    /// Further labels of its series, by their names: the pod's workload, and what of the pod was chosen.
    pub labels: Vec<(String, String)>,
}

// === impl ContainerFacts ===

impl ContainerFacts {
    /// Facts of a container with these labels, of which those of Kubernetes are known.
    pub(super) fn new(name: &str, image: &str, labels: &HashMap<String, String>) -> Self {
        let label = |name: &str| labels.get(name).filter(|value| !value.is_empty());
        let container = label(CONTAINER_NAME).map_or(name, String::as_str);
        let pod = label(POD_NAME).zip(label(POD_NAMESPACE));
        Self {
            name: kept(container),
            image: kept(image),
            pod: pod.map(|(pod, namespace)| PodContainer {
                pod: kept(pod),
                namespace: kept(namespace),
                container: kept(container),
            }),
            app: None,
            labels: Vec::new(),
        }
    }

    /// Takes the application from the labels of the pod.
    pub(super) fn set_app(&mut self, pod_labels: &HashMap<String, String>) {
        let mut values = APP_LABELS.iter().filter_map(|name| pod_labels.get(*name));
        self.app = values.find(|value| !value.is_empty()).map(|app| kept(app));
    }

    /// The same with what the API server tells of the pod. Of the container itself the runtime knows best.
    pub(super) fn with_pod(self, of_pod: Self) -> Self {
        let or = |own: String, other: String| if own.is_empty() { other } else { own };
        Self {
            name: or(self.name, of_pod.name),
            image: or(self.image, of_pod.image),
            pod: self.pod.or(of_pod.pod),
            app: of_pod.app.or(self.app),
            labels: of_pod.labels,
        }
    }

    /// Name and tag of the image. One that is known by its hash alone has no name.
    pub(crate) fn image_parts(&self) -> (Option<&str>, Option<&str>) {
        let (reference, _hash) = self.image.split_once('@').unwrap_or((&self.image, ""));
        let is_hash = reference.starts_with("sha256:")
            || (reference.len() == 64 && reference.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if reference.is_empty() || is_hash {
            return (None, None);
        }
        // A colon before a slash is that of the registry's port.
        match reference.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (Some(name), Some(tag)),
            _ => (Some(reference), None),
        }
    }
}

/// A text as long as it may be.
pub(super) fn kept(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST_TEXT)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_names_and_tags() {
        let hash = "0123456789abcdef".repeat(4);
        for (image, name, tag) in [
            ("nginx", Some("nginx"), None),
            ("nginx:1.25", Some("nginx"), Some("1.25")),
            (
                "r.example:5000/shop/web",
                Some("r.example:5000/shop/web"),
                None,
            ),
            (
                "r.example:5000/web:v2@sha256:00",
                Some("r.example:5000/web"),
                Some("v2"),
            ),
            (hash.as_str(), None, None),
            ("sha256:00ff", None, None),
            ("", None, None),
        ] {
            let facts = ContainerFacts::new("x", image, &HashMap::new());
            assert_eq!(facts.image_parts(), (name, tag), "{image}");
        }
    }

    #[test]
    fn the_kubelets_labels_are_known() {
        let labels = [
            (POD_NAME, "web-1"),
            (POD_NAMESPACE, "shop"),
            (CONTAINER_NAME, "web"),
            ("app", "not the pod's"),
        ];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut facts = ContainerFacts::new("k8s_web_1", "", &labels.into());
        let pod = facts.pod.clone().expect("a pod");
        assert_eq!(facts.name, "web");
        assert_eq!(
            (pod.pod.as_str(), pod.namespace.as_str()),
            ("web-1", "shop")
        );
        assert_eq!(facts.app, None);
        let pod_labels = [("app", "old"), ("app.kubernetes.io/name", "shop-web")];
        let pod_labels = pod_labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        facts.set_app(&pod_labels.into());
        assert_eq!(facts.app.as_deref(), Some("shop-web"));
    }
}
