//! Who listens on a port: the one question whose answer saves the user a search.

use std::fs;
use std::path::Path;

/// State `LISTEN` in `/proc/net/tcp`.
const LISTEN_STATE: &str = "0A";

/// `name (pid N)` of a program that listens on this TCP port, or `another program` where the
/// kernel does not let us see it (another user's process, another pid namespace).
#[must_use]
pub fn holder_of_port(port: u16) -> String {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let found = tables
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .find_map(|inode| process_with_socket(&inode));
    found.unwrap_or_else(|| "another program".to_owned())
}

/// Inodes of the sockets that listen on `port`, by the text of `/proc/net/tcp` (proc_pid_net(5)):
/// `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …`.
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    let suffix = format!(":{port:04X}");
    let is_listener = |fields: &Vec<&str>| {
        fields.len() > 9 && fields[1].ends_with(&suffix) && fields[3] == LISTEN_STATE
    };
    table
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<&str>>())
        .filter(is_listener)
        .map(|fields| fields[9].to_owned())
        .collect()
}

fn process_with_socket(inode: &str) -> Option<String> {
    let link = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .find(|pid| has_descriptor(*pid, &link))
        .map(|pid| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            format!("{} (pid {pid})", name.trim_end())
        })
}

fn has_descriptor(pid: u32, link: &str) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    descriptors
        .flatten()
        .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
        .any(|target| target == Path::new(link))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_table_is_read_by_port_and_state() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:0FC8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1\n\
            1: 0100007F:0FC8 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 7 1\n\
            2: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 8 1\n";
        assert_eq!(listening_inodes(table, 4040), ["4242"]);
        assert!(listening_inodes(table, 4041).is_empty());
    }

    #[test]
    fn our_own_listener_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let holder = holder_of_port(port);
        assert!(
            holder.contains(&format!("(pid {})", std::process::id())),
            "{holder}"
        );
    }
}
