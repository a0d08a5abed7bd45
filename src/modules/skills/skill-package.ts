import { createHash } from 'node:crypto';
import { InvalidArchiveError, openZip, type ZipLimits } from '../../platform/zip/zip-archive.js';
import { quote } from '../../platform/text/quoted.js';
import { parseSkillMd, type SkillMd } from './skill-md.js';
import { TooLargeError } from '../../platform/errors/domain-error.js';
import type { SkillFile } from './skill.entity.js';
import { SkillPublishError } from './skills.errors.js';

export type PackagedFile = Pick<SkillFile, 'path' | 'content' | 'isExecutable'>;

export interface SkillPackage extends SkillMd {
  files: PackagedFile[];
  contentHash: string;
}

const MB = 1024 * 1024;

/** Maximum size of an archive, as published clients allow for bundles. */
export const ARCHIVE_BYTES_MAX = 25 * MB;

const FILES_MAX = 1_000;
const FILES_BYTES_MAX = 50 * MB;

const FILE_BYTES_MAX = 5 * MB;

export const UPLOAD_LIMITS: ZipLimits = { entriesMax: FILES_MAX, totalBytesMax: FILES_BYTES_MAX, isPartUsed: true };

/** Limits of a repository, from which only the directory of the skill is unpacked. */
export const REPOSITORY_LIMITS: ZipLimits = { entriesMax: 20_000, totalBytesMax: 500 * MB, isPartUsed: true };

const SKILL_MD = 'SKILL.md';

/** Control characters, and those of bidirectional text, which can disguise a name. */
const HIDDEN = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/**
 * Reads the folder that contains SKILL.md, without hidden folders and `node_modules`.
 *
 * @param folder the skill's folder, within the top-level folder of a repository's archive; empty: the highest SKILL.md
 * @throws InvalidArchiveError, SkillPublishError, TooLargeError
 */
export async function readSkillPackage(archive: Buffer, limits: ZipLimits, folder = ''): Promise<SkillPackage> {
  const zip = await openZip(archive, limits);
  try {
    const paths = [...zip.entries].filter(([, { isDirectory }]) => !isDirectory).map(([path]) => path);
    const root = findFolder(paths, folder);
    const selected = paths
      .filter((path) => path.startsWith(root) && !isLeftOut(path.slice(root.length)))
      .map((path) => ({ path: path.slice(root.length), source: path, entry: zip.entries.get(path) }))
      .sort((a, b) => (a.path < b.path ? -1 : 1));
    if (selected.length > FILES_MAX) throw new TooLargeError(`The skill holds more than ${FILES_MAX} files`);
    if (selected.reduce((sum, { entry }) => sum + (entry?.size ?? 0), 0) > FILES_BYTES_MAX) {
      throw new TooLargeError(`The files of the skill are larger than ${FILES_BYTES_MAX / MB} MB together`);
    }
    requireDistinctNames(selected.map(({ path }) => path));
    const refused = selected.find(({ entry }) => entry?.fault)?.entry?.fault;
    if (refused) throw refused;
    const large = selected.find(({ entry }) => (entry?.size ?? 0) > FILE_BYTES_MAX);
    if (large) {
      const limit = `${FILE_BYTES_MAX / MB} MB, the most a file may have`;
      throw new InvalidArchiveError(`"${large.path}" is larger than ${limit}`);
    }
    const files: PackagedFile[] = [];
    const hash = createHash('sha256');
    for (const { path, source, entry } of selected) {
      const content = await zip.read(source, FILE_BYTES_MAX);
      const isExecutable = ((entry?.mode ?? 0) & 0o100) !== 0;
      hash.update(JSON.stringify([path, isExecutable, content.length])).update(content);
      files.push({ path, content, isExecutable });
    }
    const skillMd = files.find(({ path }) => path === SKILL_MD) as PackagedFile;
    return { ...parseSkillMd(skillMd.content), files, contentHash: hash.digest('hex') };
  } finally {
    zip.close();
  }
}

/**
 * Requires paths that stay different files on every system and contain no characters that disguise them.
 *
 * @throws InvalidArchiveError
 */
function requireDistinctNames(paths: string[]): void {
  const pathByName = new Map<string, string>();
  for (const path of paths) {
    if (HIDDEN.test(path)) {
      throw new InvalidArchiveError(
        `The name ${quote(path)} has a control character, or one that turns the direction of text`,
      );
    }
    const folded = path.normalize('NFC').toLowerCase();
    const other = pathByName.get(folded);
    if (other !== undefined) {
      throw new InvalidArchiveError(
        `${quote(other)} and ${quote(path)} are one file on systems that ignore case or Unicode forms: rename one`,
      );
    }
    pathByName.set(folded, path);
  }
}

/** Returns the folder's path with a trailing slash; empty for the root. */
function findFolder(paths: string[], folderPath: string): string {
  const notFound = (message: string) => new SkillPublishError('not_found', 'skill_md_not_found', message);
  const holders = paths
    .filter((path) => path === SKILL_MD || path.endsWith(`/${SKILL_MD}`))
    .map((path) => path.slice(0, -SKILL_MD.length));
  if (folderPath !== '') {
    const holder = holders.find((folder) => folder.split('/').slice(1, -1).join('/') === folderPath);
    if (holder === undefined) throw notFound(`There is no ${SKILL_MD} in the folder "${folderPath}"`);
    return holder;
  }
  const depth = (folder: string) => folder.split('/').length;
  const visible = holders.filter((folder) => !isLeftOut(folder)).sort((a, b) => depth(a) - depth(b));
  const [first, second] = visible;
  if (first === undefined) throw notFound(`There is no ${SKILL_MD}: put one at the top of the skill's folder`);
  if (second !== undefined && depth(first) === depth(second)) {
    throw notFound(`There are several skills, "${first}" and "${second}" among them: publish one folder at a time`);
  }
  return first;
}

/** Returns true for files in hidden folders, `node_modules` and `__MACOSX`. Hidden files belong to a skill, as in published tools. */
function isLeftOut(path: string): boolean {
  const folders = path.split('/').slice(0, -1);
  return folders.some((name) => name.startsWith('.') || name === 'node_modules' || name === '__MACOSX');
}
