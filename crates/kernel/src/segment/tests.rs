use super::*;
use crate::hash::mix;
use crate::positioned::write_all_at;

/// Temporary directory that is removed at the end of a test.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("minwise-segment-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir(&directory).expect("the directory is new");
        Self(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn write(path: &Path, low: u64, high: u64, runs: [&[u128]; 2]) -> Segment {
    let mut writer = SegmentWriter::create(path, low, high).expect("the file is new");
    for run in runs {
        for &posting in run {
            writer.push(posting).expect("postings ascend");
        }
        writer.end_run().expect("the file is writable");
    }
    let summary = writer.finish().expect("the file is writable");
    assert_eq!(summary.postings, (runs[0].len() + runs[1].len()) as u64);
    let segment = Segment::open(path).expect("the file was just written");
    let blocks = segment.check().expect("the file was just written");
    assert_eq!((summary.bytes, summary.trailer, summary.blocks), (segment.bytes(), segment.checksum(), blocks));
    segment
}

fn members(segment: &Segment, run: Run, key: u64, block: &mut Block) -> Vec<u32> {
    let mut found = Vec::new();
    let all = segment.members(run, key, block, |document| {
        found.push(document);
        ControlFlow::Continue(())
    });
    assert!(all.expect("the file is intact").is_continue());
    found
}

/// Return sorted postings of documents 0, 1, … with the given keys.
fn sorted_postings(count: u32, keys: impl Fn(u32) -> u64) -> Vec<u128> {
    let mut postings: Vec<u128> = (0..count).map(|i| pack(keys(i), i)).collect();
    postings.sort_unstable();
    postings
}

#[test]
fn a_lookup_finds_all_postings_for_every_distribution_of_keys() {
    let directory = TestDirectory::new("lookup");
    let distributions: [&dyn Fn(u32) -> u64; 6] = [
        &|i| mix(u64::from(i)),
        &|i| mix(u64::from(i % 7)),
        &|i| u64::from(i),
        &|i| u64::MAX - u64::from(i / 3),
        &|_| 5,
        &|i| 1 << (i % 64),
    ];
    for (number, keys) in distributions.iter().enumerate() {
        let bands = sorted_postings(3000, keys);
        let ids = sorted_postings(700, |i| mix(keys(i)));
        let segment = write(&directory.path(&number.to_string()), 0, 3000, [&bands, &ids]);
        for (run, postings) in [(Run::Bands, &bands), (Run::Ids, &ids)] {
            let mut keys_to_find: Vec<u64> = postings.iter().map(|&posting| key_of(posting)).collect();
            keys_to_find.extend([0, 1, 4, 6, 1 << 40, u64::MAX / 2, u64::MAX - 1, u64::MAX]);
            keys_to_find.extend((0..50).map(mix));
            let mut block = Block::default();
            for key in keys_to_find {
                let of = |key| postings.partition_point(|&posting| key_of(posting) < key);
                let end = if key == u64::MAX { postings.len() } else { of(key + 1) };
                let expected: Vec<u32> = postings[of(key)..end].iter().map(|&posting| posting as u32).collect();
                assert_eq!(members(&segment, run, key, &mut block), expected, "{number} {run:?} {key}");
            }
        }
    }
}

#[test]
fn counting_fences_below_a_key_agrees_with_the_definition() {
    for size in 0..40 {
        for distribution in 0..4 {
            let key = |i: u64| if distribution == 3 { mix(i) } else { (i / 3) << (distribution * 28) };
            let mut fences: Vec<u64> = (0..size).map(key).collect();
            fences.sort_unstable();
            let keys_to_find =
                fences.iter().flat_map(|&fence| [fence.saturating_sub(1), fence, fence.saturating_add(1)]);
            for key in keys_to_find.chain([0, u64::MAX]) {
                assert_eq!(count_below(&fences, key), fences.iter().filter(|&&fence| fence < key).count());
            }
        }
    }
}

#[test]
fn merging_equals_sorting_all_postings_without_the_removed_ones() {
    let directory = TestDirectory::new("merge");
    for count in [1, 2, 3, 4, 9] {
        let (mut segments, mut all) = (Vec::new(), [Vec::new(), Vec::new()]);
        for input in 0..count {
            let low = input * 1000;
            let run = |factor: u64| {
                let mut postings: Vec<u128> = (low..low + 300 * (input % 3))
                    .map(|document| pack(mix(document * factor % 50), document as u32))
                    .collect();
                postings.sort_unstable();
                postings
            };
            let runs = [run(3), run(7)];
            segments.push(write(&directory.path(&format!("{count}-{input}")), low, low + 1000, [&runs[0], &runs[1]]));
            all.iter_mut().zip(runs).for_each(|(all, run)| all.extend(run));
        }
        let is_removed = |document: u32| document.is_multiple_of(3);
        let output = directory.path(&format!("{count}-merged"));
        merge(&segments.iter().collect::<Vec<_>>(), &output, is_removed).expect("the inputs are intact");
        let merged = Segment::open(&output).expect("the file was just written");
        merged.check().expect("the file was just written");
        assert_eq!((merged.low(), merged.high()), (0, count * 1000));
        for (run, mut expected) in RUNS.into_iter().zip(all) {
            expected.retain(|&posting| !is_removed(posting as u32));
            expected.sort_unstable();
            let (mut entries, mut found) = (merged.entries(run), Vec::new());
            while entries.next_block(&mut found).expect("the file was just written") {}
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn segments_out_of_order_are_not_merged() {
    let directory = TestDirectory::new("order");
    let segments = [(5, 9), (0, 5)].map(|(low, high)| write(&directory.path(&low.to_string()), low, high, [&[], &[]]));
    let [late, early] = &segments;
    assert!(merge(&[early, late], &directory.path("good"), |_| false).is_ok());
    let error = merge(&[late, early], &directory.path("bad"), |_| false);
    assert!(matches!(error, Err(SegmentError::Damaged(path, _)) if path == directory.path("0")));
}

#[test]
fn postings_out_of_order_are_rejected() {
    let directory = TestDirectory::new("ascend");
    for (name, bad) in [("same", pack(5, 7)), ("key", pack(4, 8)), ("low", pack(6, 6)), ("high", pack(6, 9))] {
        let mut writer = SegmentWriter::create(&directory.path(name), 7, 9).expect("the file is new");
        writer.push(pack(5, 7)).expect("it is the first posting");
        assert!(writer.push(bad).and_then(|()| writer.finish()).is_err(), "{name}");
    }
}

#[test]
fn every_flipped_bit_truncation_and_extension_is_detected() {
    let directory = TestDirectory::new("damage");
    let path = directory.path("segment");
    write(&path, 0, 100, [&sorted_postings(100, |i| mix(u64::from(i))), &sorted_postings(10, |i| mix(u64::from(i)))]);
    let whole = std::fs::read(&path).expect("the file was just written");
    let is_detected = || Segment::open(&path).and_then(|segment| segment.check()).is_err();
    assert!(!is_detected());
    let file = File::options().write(true).open(&path).expect("the file was just written");
    for (offset, byte) in whole.iter().enumerate() {
        for bit in 0..8 {
            write_all_at(&file, &[byte ^ 1 << bit], offset as u64).expect("the file is writable");
            assert!(is_detected(), "bit {bit} of byte {offset}");
        }
        write_all_at(&file, &[*byte], offset as u64).expect("the file is writable");
    }
    for addition in [1, 8, 1024, 1032] {
        file.set_len((whole.len() + addition) as u64).expect("the file is writable");
        assert!(is_detected(), "{addition} more");
    }
    for length in (0..whole.len()).rev() {
        file.set_len(length as u64).expect("the file is writable");
        assert!(is_detected(), "{length} bytes");
    }
    let mut swapped = whole;
    swapped[BLOCK_BYTES..3 * BLOCK_BYTES].rotate_left(BLOCK_BYTES);
    write_all_at(&file, &swapped, 0).expect("the file is writable");
    assert!(is_detected(), "two blocks swapped");
}

#[test]
fn a_lookup_detects_damage_in_the_block_it_reads() {
    let directory = TestDirectory::new("block");
    let path = directory.path("segment");
    let postings = sorted_postings(250, |i| mix(u64::from(i)));
    let segment = write(&path, 0, 300, [&postings, &[]]);
    let look_up =
        || segment.members(Run::Bands, key_of(postings[0]), &mut Block::default(), |_| ControlFlow::Break(()));
    assert!(look_up().is_ok());
    let mut bytes = std::fs::read(&path).expect("the file was just written");
    bytes[BLOCK_BYTES + 500] ^= 1;
    std::fs::write(&path, &bytes).expect("the directory is writable");
    let what = look_up().map_err(|error| error.to_string());
    assert_eq!(what, Err(format!("{}: block 1 is damaged", path.display())));
    std::fs::write(&path, &bytes[..BLOCK_BYTES + 500]).expect("the directory is writable");
    let what = look_up().map_err(|error| error.to_string());
    assert_eq!(what, Err(format!("{}: the block at byte 1024 is cut off", path.display())));
}
