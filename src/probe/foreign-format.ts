import { open } from 'node:fs/promises';

/**
 * What kind of file stands where a probe was expected, by its first bytes; null = none of those that are refused by
 * kind. Pickles (also inside torch and NumPy files) are named because loading one can run code.
 */
export async function foreignFormat(path: string): Promise<string | null> {
  const file = await open(path, 'r');
  try {
    const head = Buffer.alloc(256);
    const { bytesRead } = await file.read(head, 0, head.length, 0);
    const bytes = head.subarray(0, bytesRead);
    const text = bytes.toString('latin1');
    if (text.startsWith('version https://git-lfs')) return 'a Git LFS pointer: run git lfs pull';
    if (text.startsWith('\u0093NUMPY')) {
      return 'a NumPy .npy file, which may hold a pickle, and loading a pickle can run code';
    }
    if (text.startsWith('PK\u0003\u0004')) {
      return 'a zip archive, as torch.save writes: it holds a pickle, and loading a pickle can run code';
    }
    // Protocol 2 to 5 of pickle begin with PROTO (0x80) and the version; older ones have no mark of their own.
    if (bytes[0] === 0x80 && bytes[1] >= 2 && bytes[1] <= 5) return 'a pickle: loading a pickle can run code';
    return null;
  } finally {
    await file.close();
  }
}
