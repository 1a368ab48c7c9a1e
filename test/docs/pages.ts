/** The pages of the project, and what is on them. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { root } from "../harness/program.ts";

export const pages = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  ...readdirSync(join(root, "docs"))
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file}`),
];

export interface Block {
  readonly kind: string;
  readonly text: string;
}

export function readPage(page: string): string {
  return readFileSync(join(root, page), "utf8");
}

export function blocksOf(page: string): readonly Block[] {
  return [...readPage(page).matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, kind = "", text = ""]) => ({ kind, text }));
}

/** Every link to another page or to a heading. */
export function linksOf(
  page: string,
): readonly { readonly page: string; readonly file: string; readonly heading?: string }[] {
  const prose = readPage(page).replaceAll(/^```.*?^```$/gms, "");
  return [...prose.matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].map(([, target = "", heading]) => {
    const file = target === "" ? page : relative(root, join(root, dirname(page), target));
    return { page, file, ...(heading !== undefined && { heading }) };
  });
}

/** Headings as the anchors that links name. */
export function headingsOf(page: string): readonly string[] {
  return [...readPage(page).matchAll(/^#+ (.*)$/gm)].map(([, text = ""]) =>
    text
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, "")
      .replaceAll(/\s/g, "-"),
  );
}
