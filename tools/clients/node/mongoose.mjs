// An application on Mongoose: schemas, references, middleware, transactions.
import mongoose from 'mongoose';
import { check, report } from './check.mjs';

await mongoose.connect(process.env.TESSERA_URI, { dbName: 'clients_mongoose', serverSelectionTimeoutMS: 20000 });
await mongoose.connection.dropDatabase();

const Author = mongoose.model('Author', new mongoose.Schema({ name: { type: String, unique: true, required: true } }));
const bookSchema = new mongoose.Schema({ title: String, pages: { type: Number, min: 1 }, author: { type: mongoose.ObjectId, ref: 'Author' } },
  { timestamps: true, optimisticConcurrency: true });
bookSchema.index({ title: 'text' });
const Book = mongoose.model('Book', bookSchema);
await Author.init();
await Book.init();

await check('documents are validated, saved and populated', async (equal) => {
  const author = await Author.create({ name: 'A' });
  await Book.create([{ title: 'First words', pages: 10, author }, { title: 'Second thoughts', pages: 20, author }]);
  equal((await new Book({ pages: 0 }).save().catch((e) => e)).name, 'ValidationError');
  const book = await Book.findOne({ title: /^First/ }).populate('author');
  equal([book.author.name, book.createdAt instanceof Date], ['A', true]);
  equal((await Author.create({ name: 'A' }).catch((e) => e)).code, 11000);
});

await check('a stale document is not saved over a newer one', async (equal) => {
  const [one, other] = [await Book.findOne({ pages: 10 }), await Book.findOne({ pages: 10 })];
  one.pages = 11;
  await one.save();
  other.pages = 12;
  equal((await other.save().catch((e) => e)).name, 'VersionError');
});

await check('queries, text searches and aggregations', async (equal) => {
  equal((await Book.find({ $text: { $search: 'thoughts' } })).length, 1);
  const sums = await Book.aggregate([{ $group: { _id: '$author', pages: { $sum: '$pages' } } }]);
  equal(sums[0].pages, 31);
  const titles = [];
  for await (const b of Book.find().sort({ pages: -1 }).lean().cursor({ batchSize: 1 })) titles.push(b.title);
  equal(titles, ['Second thoughts', 'First words']);
});

await check('a transaction that fails leaves nothing', async (equal) => {
  const run = mongoose.connection.transaction(async (session) => {
    await Book.create([{ title: 'Never', pages: 1 }], { session });
    throw new Error('no');
  });
  equal((await run.catch((e) => e)).message, 'no');
  equal(await Book.countDocuments({ title: 'Never' }), 0);
});

await mongoose.connection.dropDatabase();
await mongoose.disconnect();
report();
