import { access, readdir } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { settingsPage, troubleshootPage } from '../scripts/settings-page.mjs';
import { settingDocs } from '../src/config/env.js';
import { checksByPart } from '../src/platform/checks/surroundings.js';
import { clientConfigsOf } from './support/documentation/client-configs.js';
import { blocksOf, docPages, readPage } from './support/documentation/doc-pages.js';

const LINES_MAX = { 'README.md': 150, other: 250 };
const shells = ['', 'sh', 'bash', 'shell', 'zsh', 'console', 'shell-session'];

const pages = await Promise.all((await docPages()).map(async (page) => ({ page, text: await readPage(page) })));
const blocks = pages.flatMap(({ page, text }) => blocksOf(page, text));
const place = ({ page, line }: { page: string; line: number }): string => `${page}:${line}`;

describe('the documentation', () => {
  it('has the settings of the code: `npm run settings` writes them', async () => {
    expect(await readPage('docs/reference/settings.md')).toBe(settingsPage(settingDocs()));
  });

  it('has what the checks of the start say: `npm run settings` writes it', async () => {
    expect(await readPage('docs/reference/troubleshoot.md')).toBe(troubleshootPage(checksByPart));
  });

  it('marks every shell block as `sh test`, `sh test background`, `sh test fails`, or `sh manual` with a reason', () => {
    const unmarked = blocks
      .filter(({ info }) => shells.includes(info.split(' ')[0]))
      .filter(({ info }) => !/^sh (test|test background|test fails|manual \S.+)$/.test(info));
    expect(unmarked.map(place)).toEqual([]);
  });

  it('configures Claude, Cursor and VS Code in the first steps', () => {
    const firstSteps = blocks.filter(({ page }) => page === 'docs/start/first-calls.md');
    expect(clientConfigsOf(firstSteps).map(({ block }) => block.info)).toEqual([
      'sh manual needs Claude Code',
      'json',
      'json',
    ]);
  });

  it('shows output only below commands that are executed', () => {
    const stray = blocks.filter(
      ({ info, page }, index) =>
        info === 'text output' && !(blocks[index - 1]?.page === page && /^sh test\b/.test(blocks[index - 1].info)),
    );
    expect(stray.map(place)).toEqual([]);
  });

  it('executes only commands that stay on this machine, but for packages of npm', () => {
    const outside = blocks
      .filter(({ info }) => /^sh test\b/.test(info))
      .filter(({ text }) =>
        [...text.matchAll(/\b(?:https?|wss?):\/\/([^/:\s'"]+)/g)].some(([, host]) => host !== '127.0.0.1'),
      );
    expect(outside.map(place)).toEqual([]);
  });

  it('has no page that is too long', () => {
    const long = pages.filter(
      ({ page, text }) => text.split('\n').length - 1 > (page === 'README.md' ? LINES_MAX[page] : LINES_MAX.other),
    );
    expect(long.map(({ page }) => page)).toEqual([]);
  });

  it('names each directory of modules and of extensions once in the scope', async () => {
    const scope = await readPage('docs/explanation/scope.md');
    for (const [parent, pattern] of [
      ['modules', /\[`([\w-]+)`\]$/gm],
      ['extensions', /(?<=\| .*)`([\w-]+)`/g],
    ] as const) {
      const named = [...scope.matchAll(pattern)].map(([, name]) => name);
      const directories = await readdir(new URL(`../src/${parent}/`, import.meta.url));
      expect(named.toSorted()).toEqual(directories.toSorted());
    }
  });

  it('links to pages and headings that exist', async () => {
    const anchors = new Map(pages.map(({ page, text }) => [page, headingsOf(text)]));
    const broken: string[] = [];
    for (const { page, text } of pages) {
      for (const [, target] of text.replaceAll(/```[^]*?```/g, '').matchAll(/\]\(((?!https?:)[^)]+)\)/g)) {
        const [path, anchor] = target.split('#');
        const file = path === '' ? page : new URL(path, `file:///${page}`).pathname.slice(1);
        const isMissing = await access(new URL(`../${file}`, import.meta.url)).then(
          () => anchor !== undefined && !(anchors.get(file)?.has(anchor) ?? true),
          () => true,
        );
        if (isMissing) broken.push(`${page}: ${target}`);
      }
    }
    expect(broken).toEqual([]);
  });
});

/** The anchors of a page's headings, as GitHub makes them. */
function headingsOf(text: string): Set<string> {
  const headings = text.replaceAll(/```[^]*?```/g, '').matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, heading]) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}
