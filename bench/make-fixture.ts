/**
 * Makes models/fixture (a random-weight decoder) and data/fixture (invented episodes): enough to run the whole chain, and
 * nothing to learn from. node bench/run.mjs bench/make-fixture.ts
 */
import { fileURLToPath } from 'node:url';
import { writeInvented } from '../test/fakes/invented-episodes.ts';
import { writeTinyModel } from '../test/fakes/tiny-model.ts';

const at = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));
await writeTinyModel(at('models/fixture'), 1);
await writeInvented(at('data/fixture'), 24, 1);
