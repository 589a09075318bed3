//! Builds small files with exactly the parts that a test needs.

/// A box: size, type, payload.
pub(super) fn boxed(kind: &[u8], payload: &[u8]) -> Vec<u8> {
    let size = u32::try_from(payload.len() + 8).unwrap();
    [&size.to_be_bytes()[..], kind, payload].concat()
}

/// A box whose size follows its type, in 64 bits.
pub(super) fn boxed_64(kind: &[u8], payload: &[u8]) -> Vec<u8> {
    let size = u64::try_from(payload.len() + 16).unwrap();
    [&1_u32.to_be_bytes()[..], kind, &size.to_be_bytes(), payload].concat()
}

/// `ftyp` with a major brand and compatible brands.
pub(super) fn ftyp(major: &[u8], compatible: &[&[u8; 4]]) -> Vec<u8> {
    let mut payload = [major, &[0; 4]].concat();
    for brand in compatible {
        payload.extend_from_slice(&brand[..]);
    }
    boxed(b"ftyp", &payload)
}

/// `mvhd` of version 0.
pub(super) fn mvhd(timescale: u32, duration: u32) -> Vec<u8> {
    let mut payload = vec![0; 100];
    payload[12..16].copy_from_slice(&timescale.to_be_bytes());
    payload[16..20].copy_from_slice(&duration.to_be_bytes());
    boxed(b"mvhd", &payload)
}

/// `mvhd` of version 1.
pub(super) fn mvhd_64(timescale: u32, duration: u64) -> Vec<u8> {
    let mut payload = vec![0; 112];
    payload[0] = 1;
    payload[20..24].copy_from_slice(&timescale.to_be_bytes());
    payload[24..32].copy_from_slice(&duration.to_be_bytes());
    boxed(b"mvhd", &payload)
}

/// A track with a handler and dimensions.
pub(super) fn trak(handler: &[u8], width: u32, height: u32) -> Vec<u8> {
    let mut tkhd = vec![0; 84];
    tkhd[76..80].copy_from_slice(&(width << 16).to_be_bytes());
    tkhd[80..84].copy_from_slice(&(height << 16).to_be_bytes());
    let hdlr = |handler: &[u8]| {
        let mut payload = vec![0; 25];
        payload[8..12].copy_from_slice(handler);
        boxed(b"hdlr", &payload)
    };
    // QuickTime has a second handler, for data, one level below.
    let minf = boxed(b"minf", &hdlr(b"url "));
    let mdia = boxed(b"mdia", &[hdlr(handler), minf].concat());
    boxed(b"trak", &[boxed(b"tkhd", &tkhd), mdia].concat())
}

/// `mvex` with the duration of all fragments.
pub(super) fn mvex(duration: u32) -> Vec<u8> {
    let mehd = [&[0; 4][..], &duration.to_be_bytes()].concat();
    boxed(b"mvex", &boxed(b"mehd", &mehd))
}

pub(super) fn moov(children: &[Vec<u8>]) -> Vec<u8> {
    boxed(b"moov", &children.concat())
}

/// A video of eight seconds, 1280 by 720, with sound.
pub(super) fn eight_seconds() -> Vec<u8> {
    moov(&[
        mvhd(1000, 8000),
        trak(b"soun", 0, 0),
        trak(b"vide", 1280, 720),
    ])
}

pub(super) fn mdat() -> Vec<u8> {
    boxed(b"mdat", b"frames")
}

pub(super) fn isom() -> Vec<u8> {
    ftyp(b"isom", &[b"iso2", b"mp41"])
}

/// Valid files, by name.
pub(super) fn good_videos() -> Vec<(&'static str, Vec<u8>)> {
    let fragmented = moov(&[mvhd(1000, 0), mvex(8000), trak(b"vide", 1280, 720)]);
    let moof = boxed(b"moof", b"");
    vec![
        ("moov first", [isom(), eight_seconds(), mdat()].concat()),
        ("moov last", [isom(), mdat(), eight_seconds()].concat()),
        (
            "64-bit mdat",
            [isom(), boxed_64(b"mdat", b"x"), eight_seconds()].concat(),
        ),
        ("fragmented", [isom(), fragmented, moof, mdat()].concat()),
    ]
}

/// A chunk with its checksum.
pub(super) fn chunk(kind: &[u8], data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    let body = [kind, data].concat();
    let crc = crc32(&body);
    [&length.to_be_bytes()[..], &body, &crc.to_be_bytes()].concat()
}

/// `IHDR` of an image of 2 by 3 pixels.
pub(super) fn ihdr(depth: u8, colour: u8) -> Vec<u8> {
    chunk(b"IHDR", &[0, 0, 0, 2, 0, 0, 0, 3, depth, colour, 0, 0, 0])
}

pub(super) fn png(chunks: &[Vec<u8>]) -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n".to_vec(), chunks.concat()].concat()
}

pub(super) fn good_png() -> Vec<u8> {
    png(&[
        ihdr(8, 2),
        chunk(b"IDAT", b"pixels"),
        chunk(b"IDAT", b"more"),
        chunk(b"IEND", b""),
    ])
}

/// The checksum by a table, as in the standard. The code under test computes it in another way.
fn crc32(bytes: &[u8]) -> u32 {
    let table: Vec<u32> = (0..256_u32)
        .map(|n| {
            (0..8).fold(n, |c, _| {
                if c & 1 == 1 {
                    0xedb8_8320 ^ (c >> 1)
                } else {
                    c >> 1
                }
            })
        })
        .collect();
    let step = |crc: u32, byte: &u8| table[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ (crc >> 8);
    bytes.iter().fold(0xffff_ffff, step) ^ 0xffff_ffff
}
