use super::*;
use crate::hash::mix;

/// A directory of one test, removed when it is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("minwise-segment-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("the folder is new");
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
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
        writer.end_run().expect("it can be written");
    }
    assert_eq!(writer.finish().expect("it can be written"), (runs[0].len() + runs[1].len()) as u64);
    let segment = Segment::open(path).expect("it was just written");
    segment.check().expect("it was just written");
    segment
}

fn members(segment: &Segment, run: Run, key: u64, block: &mut Block) -> Vec<u32> {
    let mut found = Vec::new();
    let all = segment.members(run, key, block, |document| {
        found.push(document);
        ControlFlow::Continue(())
    });
    assert!(all.expect("the file is whole").is_continue());
    found
}

/// Postings with crowded, far and few keys.
fn spread(count: u32, keys: impl Fn(u32) -> u64) -> Vec<u128> {
    let mut postings: Vec<u128> = (0..count).map(|i| pack(keys(i), i)).collect();
    postings.sort_unstable();
    postings
}

#[test]
fn a_lookup_finds_what_was_written_whatever_the_spread_of_the_keys() {
    let folder = Folder::new("lookup");
    let spreads: [&dyn Fn(u32) -> u64; 6] = [
        &|i| mix(u64::from(i)),
        &|i| mix(u64::from(i % 7)),
        &|i| u64::from(i),
        &|i| u64::MAX - u64::from(i / 3),
        &|_| 5,
        &|i| 1 << (i % 64),
    ];
    for (number, keys) in spreads.iter().enumerate() {
        let bands = spread(3000, keys);
        let ids = spread(700, |i| mix(keys(i)));
        let segment = write(&folder.path(&number.to_string()), 0, 3000, [&bands, &ids]);
        for (run, postings) in [(Run::Bands, &bands), (Run::Ids, &ids)] {
            let mut asked: Vec<u64> = postings.iter().map(|&posting| key_of(posting)).collect();
            asked.extend([0, 1, 4, 6, 1 << 40, u64::MAX / 2, u64::MAX - 1, u64::MAX]);
            asked.extend((0..50).map(mix));
            let mut block = Block::default();
            for key in asked {
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
        for spread in 0..4 {
            let key = |i: u64| if spread == 3 { mix(i) } else { (i / 3) << (spread * 28) };
            let mut fences: Vec<u64> = (0..size).map(key).collect();
            fences.sort_unstable();
            let asked = fences.iter().flat_map(|&fence| [fence.saturating_sub(1), fence, fence.saturating_add(1)]);
            for key in asked.chain([0, u64::MAX]) {
                assert_eq!(count_below(&fences, key), fences.iter().filter(|&&fence| fence < key).count());
            }
        }
    }
}

#[test]
fn merging_is_sorting_all_together_without_the_removed() {
    let folder = Folder::new("merge");
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
            segments.push(write(&folder.path(&format!("{count}-{input}")), low, low + 1000, [&runs[0], &runs[1]]));
            all.iter_mut().zip(runs).for_each(|(all, run)| all.extend(run));
        }
        let is_removed = |document: u32| document.is_multiple_of(3);
        let output = folder.path(&format!("{count}-merged"));
        merge(&segments.iter().collect::<Vec<_>>(), &output, is_removed).expect("all is well");
        let merged = Segment::open(&output).expect("it was just written");
        merged.check().expect("it was just written");
        assert_eq!((merged.low(), merged.high()), (0, count * 1000));
        for (run, mut expected) in RUNS.into_iter().zip(all) {
            expected.retain(|&posting| !is_removed(posting as u32));
            expected.sort_unstable();
            let (mut entries, mut found) = (merged.entries(run), Vec::new());
            while entries.next_block(&mut found).expect("it was just written") {}
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn segments_that_do_not_ascend_are_not_merged() {
    let folder = Folder::new("order");
    let segments = [(5, 9), (0, 5)].map(|(low, high)| write(&folder.path(&low.to_string()), low, high, [&[], &[]]));
    let [late, early] = &segments;
    assert!(merge(&[early, late], &folder.path("good"), |_| false).is_ok());
    let error = merge(&[late, early], &folder.path("bad"), |_| false);
    assert!(matches!(error, Err(SegmentError::Damaged(path, _)) if path == folder.path("0")));
}

#[test]
fn postings_out_of_order_are_refused() {
    let folder = Folder::new("ascend");
    for (name, bad) in [("same", pack(5, 7)), ("key", pack(4, 8)), ("low", pack(6, 6)), ("high", pack(6, 9))] {
        let mut writer = SegmentWriter::create(&folder.path(name), 7, 9).expect("the file is new");
        writer.push(pack(5, 7)).expect("it is the first");
        assert!(writer.push(bad).and_then(|()| writer.finish()).is_err(), "{name}");
    }
}

#[test]
fn a_flipped_bit_a_cut_and_an_addition_never_go_unnoticed() {
    let folder = Folder::new("damage");
    let path = folder.path("segment");
    write(&path, 0, 100, [&spread(100, |i| mix(u64::from(i))), &spread(10, |i| mix(u64::from(i)))]);
    let whole = std::fs::read(&path).expect("it was just written");
    let is_noticed = || Segment::open(&path).and_then(|segment| segment.check()).is_err();
    assert!(!is_noticed());
    let file = File::options().write(true).open(&path).expect("it was just written");
    for (at, byte) in whole.iter().enumerate() {
        for bit in 0..8 {
            file.write_all_at(&[byte ^ 1 << bit], at as u64).expect("the file is ours");
            assert!(is_noticed(), "bit {bit} of byte {at}");
        }
        file.write_all_at(&[*byte], at as u64).expect("the file is ours");
    }
    for addition in [1, 8, 1024, 1032] {
        file.set_len((whole.len() + addition) as u64).expect("the file is ours");
        assert!(is_noticed(), "{addition} more");
    }
    for length in (0..whole.len()).rev() {
        file.set_len(length as u64).expect("the file is ours");
        assert!(is_noticed(), "{length} bytes");
    }
    let mut swapped = whole;
    swapped[BLOCK..3 * BLOCK].rotate_left(BLOCK);
    file.write_all_at(&swapped, 0).expect("the file is ours");
    assert!(is_noticed(), "two blocks swapped");
}

#[test]
fn a_lookup_notices_damage_in_the_block_it_reads() {
    let folder = Folder::new("block");
    let path = folder.path("segment");
    let postings = spread(250, |i| mix(u64::from(i)));
    let segment = write(&path, 0, 300, [&postings, &[]]);
    let look_up =
        || segment.members(Run::Bands, key_of(postings[0]), &mut Block::default(), |_| ControlFlow::Break(()));
    assert!(look_up().is_ok());
    let mut bytes = std::fs::read(&path).expect("it was just written");
    bytes[BLOCK + 500] ^= 1;
    std::fs::write(&path, &bytes).expect("the folder is ours");
    let what = look_up().map_err(|error| error.to_string());
    assert_eq!(what, Err(format!("{}: block 1 is damaged", path.display())));
    std::fs::write(&path, &bytes[..BLOCK + 500]).expect("the folder is ours");
    let what = look_up().map_err(|error| error.to_string());
    assert_eq!(what, Err(format!("{}: the block at byte 1024 is cut off", path.display())));
}
