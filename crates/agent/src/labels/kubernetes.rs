//! Pod, namespace and container name from the kubelet's log directory.
//!
//! The kubelet links each container's log as
//! `/var/log/containers/POD_NAMESPACE_CONTAINER-CONTAINERID.log`. Pod and namespace names are DNS
//! labels, which have no underscore, so the parts are unambiguous. This needs no access to the API
//! server and costs it nothing.

use std::path::Path;

/// Where the kubelet keeps its links.
pub(crate) const LOG_LINKS: &str = "/var/log/containers";

/// The names of one container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodContainer {
    /// The pod.
    pub pod: String,
    /// Its namespace.
    pub namespace: String,
    /// The container's name in the pod's specification.
    pub container: String,
}

/// Looks a container id up among the kubelet's links in `directory`; `None` where no kubelet runs.
#[must_use]
pub(crate) fn find_container(directory: &Path, container_id: &str) -> Option<PodContainer> {
    std::fs::read_dir(directory).ok()?.find_map(|entry| {
        let name = entry.ok()?.file_name();
        parse_link(name.to_str()?, container_id)
    })
}

fn parse_link(name: &str, container_id: &str) -> Option<PodContainer> {
    let rest = name.strip_suffix(".log")?.strip_suffix(container_id)?;
    let mut parts = rest.strip_suffix('-')?.splitn(3, '_');
    let (pod, namespace, container) = (parts.next()?, parts.next()?, parts.next()?);
    Some(PodContainer {
        pod: pod.to_owned(),
        namespace: namespace.to_owned(),
        container: container.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f1c9a1de2b5c0a7e88f2a6d1b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e";

    #[test]
    fn the_link_of_the_container_is_found() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let link = directory
            .path()
            .join(format!("web-7d9f-x2_shop_nginx-proxy-{ID}.log"));
        std::fs::write(link, "").expect("a file in it");
        let found = find_container(directory.path(), ID).expect("the container");
        assert_eq!(found.pod, "web-7d9f-x2");
        assert_eq!(found.namespace, "shop");
        assert_eq!(found.container, "nginx-proxy");
        assert_eq!(find_container(directory.path(), "0123"), None);
    }

    #[test]
    fn hosts_without_kubelet_have_no_names() {
        assert_eq!(find_container(Path::new("/nonexistent"), ID), None);
        assert_eq!(parse_link("notes.txt", ID), None);
    }
}
