//! What was mapped: files, memory without file, the kernel and its parts.

use candela_model::StringId;
use hashbrown::HashMap;

use crate::hex::hex;
use crate::perf_data::texts::Texts;

/// The kernel itself, as the agent calls it.
pub(crate) const KERNEL_FILE: &str = "[kernel]";
const GUEST_KERNEL_FILE: &str = "[guest.kernel]";
const BPF_FILE: &str = "[bpf]";

/// What perf calls the kernel, with the name of a symbol behind it.
pub(crate) const PERF_KERNEL: &str = "[kernel.kallsyms]";
const PERF_GUEST_KERNEL: &str = "[guest.kernel.kallsyms]";

/// `PERF_RECORD_KSYMBOL_TYPE_BPF`.
const SYMBOL_OF_BPF: u16 = 1;

/// Memory that no file is behind: what runs there was made by a just-in-time compiler.
const ANONYMOUS: [&str; 7] = [
    "//anon",
    "/dev/zero",
    "/anon_hugepage",
    "[anon",
    "[heap]",
    "[stack",
    "/SYSV",
];

/// What a mapping is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MappedFile {
    pub(crate) kind: FileKind,
    /// The path, or the name of a part of the kernel.
    pub(crate) path: StringId,
    /// What perf calls it, where that is something else: its build id goes by that.
    pub(crate) perf_path: StringId,
    /// Hexadecimal digits; empty where the mapping does not tell it.
    pub(crate) build_id: StringId,
    /// The function that fills the mapping (BPF programs).
    pub(crate) function: StringId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FileKind {
    Object,
    Anonymous,
    /// What a just-in-time compiler made, as a file that simpleperf wrote of it.
    Compiled,
    Kernel,
}

/// Each once.
#[derive(Debug, Default)]
pub(crate) struct Files {
    list: Vec<MappedFile>,
    numbers: HashMap<MappedFile, u32>,
    /// A symbol of the running kernel and its address, by which it can be told from the same kernel
    /// after another start.
    pub(crate) kernel_reference: Option<(String, u64)>,
}

impl Files {
    /// # Panics
    /// When the number is of other files.
    pub(crate) fn get(&self, number: u32) -> &MappedFile {
        &self.list[number as usize]
    }

    pub(crate) fn user_file(
        &mut self,
        path: &[u8],
        build_id: &str,
        is_compiled: bool,
        texts: &mut Texts,
    ) -> u32 {
        let is_anonymous = ANONYMOUS
            .iter()
            .any(|start| path.starts_with(start.as_bytes()));
        let path = texts.intern(path);
        self.number(MappedFile {
            kind: match (is_compiled, is_anonymous) {
                (true, _) => FileKind::Compiled,
                (false, true) => FileKind::Anonymous,
                (false, false) => FileKind::Object,
            },
            path,
            perf_path: path,
            build_id: texts.strings.intern(build_id),
            function: StringId::default(),
        })
    }

    /// The kernel or a module, under the name that the agent gives it.
    pub(crate) fn kernel_file(
        &mut self,
        perf_path: &[u8],
        build_id: &str,
        file_offset: u64,
        texts: &mut Texts,
    ) -> u32 {
        let perf_path = String::from_utf8_lossy(perf_path);
        if let Some(symbol) = perf_path.strip_prefix(PERF_KERNEL)
            && !symbol.is_empty()
        {
            self.kernel_reference = Some((symbol.to_owned(), file_offset));
        }
        let (name, perf_name) = kernel_names(&perf_path);
        self.number(MappedFile {
            kind: FileKind::Kernel,
            path: texts.intern(name.as_bytes()),
            perf_path: texts.intern(perf_name.as_bytes()),
            build_id: texts.strings.intern(build_id),
            function: StringId::default(),
        })
    }

    /// Code in the kernel that has a name and no file.
    pub(crate) fn kernel_symbol(&mut self, function: &[u8], kind: u16, texts: &mut Texts) -> u32 {
        let is_bpf = kind == SYMBOL_OF_BPF;
        let path = if is_bpf { BPF_FILE } else { KERNEL_FILE };
        let path = texts.strings.intern(path);
        self.number(MappedFile {
            kind: FileKind::Kernel,
            path,
            perf_path: StringId::default(),
            build_id: StringId::default(),
            function: texts.intern(function),
        })
    }

    fn number(&mut self, file: MappedFile) -> u32 {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(file).or_insert(next);
        if number == next {
            self.list.push(file);
        }
        number
    }
}

/// Our name and the one that build ids go by: `[kernel]` for `[kernel.kallsyms]_text`, `[ext4]` for
/// `/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz`.
fn kernel_names(perf_path: &str) -> (String, &str) {
    if perf_path.starts_with(PERF_KERNEL) {
        return (KERNEL_FILE.to_owned(), PERF_KERNEL);
    }
    if perf_path.starts_with(PERF_GUEST_KERNEL) {
        return (GUEST_KERNEL_FILE.to_owned(), PERF_GUEST_KERNEL);
    }
    let file_name = perf_path.rsplit('/').next().unwrap_or(perf_path);
    match file_name.split_once(".ko") {
        Some((module, _)) => (format!("[{}]", module.replace('-', "_")), perf_path),
        None => (perf_path.to_owned(), perf_path),
    }
}

/// The digits of a build id. Shorter ones than those of SHA-1 stand in as many bytes with zeros
/// behind them where the recording does not say how long they are.
pub(crate) fn build_id_hex(bytes: &[u8]) -> String {
    const MD5_BYTES: usize = 16;
    let is_padded = bytes.len() > MD5_BYTES && bytes[MD5_BYTES..].iter().all(|byte| *byte == 0);
    let bytes = if is_padded {
        &bytes[..MD5_BYTES]
    } else {
        bytes
    };
    if bytes.iter().all(|byte| *byte == 0) {
        return String::new();
    }
    hex(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_kernel_have_the_agents_names() {
        let cases = [
            ("[kernel.kallsyms]_text", "[kernel]", "[kernel.kallsyms]"),
            (
                "[guest.kernel.kallsyms]_text",
                "[guest.kernel]",
                "[guest.kernel.kallsyms]",
            ),
            (
                "/lib/modules/6.1/kernel/net/nf-nat.ko.xz",
                "[nf_nat]",
                "/lib/modules/6.1/kernel/net/nf-nat.ko.xz",
            ),
            ("[nf_nat]", "[nf_nat]", "[nf_nat]"),
        ];
        for (perf_path, name, perf_name) in cases {
            assert_eq!(kernel_names(perf_path), (name.to_owned(), perf_name));
        }
    }

    #[test]
    fn build_ids_lose_what_fills_them_up() {
        let mut bytes = [0xab; 20];
        assert_eq!(build_id_hex(&bytes).len(), 40);
        bytes[16..].fill(0);
        assert_eq!(build_id_hex(&bytes).len(), 32);
        assert_eq!(build_id_hex(&[0; 20]), "");
        assert_eq!(build_id_hex(&[1, 2]), "0102");
    }
}
