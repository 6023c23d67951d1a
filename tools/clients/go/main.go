// A small application on the driver for Go: what an application does in a day, each thing checked.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

type application struct {
	context.Context
	client *mongo.Client
	db     *mongo.Database
}

// must ends the check that is running.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Errorf("found %v, not %v", found, expected))
	}
}

type account struct {
	ID  string `bson:"_id"`
	Sum int    `bson:"sum"`
}

func (a application) documents() {
	items := a.db.Collection("items")
	_, err := items.InsertMany(a, []any{bson.M{"_id": 1, "n": 1}, bson.M{"_id": 2, "n": 2}, bson.M{"_id": 3, "n": 3}})
	must(err)
	updated, err := items.UpdateOne(a, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"n": 10}, "$push": bson.M{"list": "x"}})
	must(err)
	equal(updated.ModifiedCount, int64(1))
	var found struct {
		N    int
		List []string
	}
	must(items.FindOne(a, bson.M{"_id": 1}).Decode(&found))
	equal(found.N, 11)
	equal(found.List, []string{"x"})
	n, err := items.CountDocuments(a, bson.M{"n": bson.M{"$gte": 3}})
	must(err)
	equal(n, int64(2))
	deleted, err := items.DeleteMany(a, bson.M{"n": bson.M{"$lt": 5}})
	must(err)
	equal(deleted.DeletedCount, int64(2))
}

func (a application) uniqueIndex() {
	users := a.db.Collection("users")
	model := mongo.IndexModel{Keys: bson.D{{Key: "email", Value: 1}}, Options: options.Index().SetUnique(true)}
	_, err := users.Indexes().CreateOne(a, model)
	must(err)
	_, err = users.InsertOne(a, bson.M{"email": "x"})
	must(err)
	_, err = users.InsertOne(a, bson.M{"email": "x"})
	equal(mongo.IsDuplicateKeyError(err), true)
}

func (a application) bulk() {
	bulk := a.db.Collection("bulk")
	done, err := bulk.BulkWrite(a, []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 1}),
		mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": 2}).SetUpdate(bson.M{"$set": bson.M{"x": 1}}).SetUpsert(true),
		mongo.NewReplaceOneModel().SetFilter(bson.M{"_id": 1}).SetReplacement(bson.M{"y": 1}),
		mongo.NewDeleteOneModel().SetFilter(bson.M{"_id": 2}),
	})
	must(err)
	equal([]int64{done.InsertedCount, done.UpsertedCount, done.ModifiedCount, done.DeletedCount}, []int64{1, 1, 1, 1})
	_, err = bulk.InsertMany(a, []any{bson.M{"_id": 1}, bson.M{"_id": 3}}, options.InsertMany().SetOrdered(false))
	var failed mongo.BulkWriteException
	equal(errors.As(err, &failed) && len(failed.WriteErrors) == 1, true)
}

func (a application) batches() {
	many := a.db.Collection("many")
	var documents []any
	for i := range 5000 {
		documents = append(documents, bson.M{"_id": i, "group": i % 10})
	}
	_, err := many.InsertMany(a, documents)
	must(err)
	cursor, err := many.Find(a, bson.M{}, options.Find().SetSort(bson.M{"_id": 1}).SetBatchSize(700))
	must(err)
	seen := 0
	for cursor.Next(a) {
		equal(int(cursor.Current.Lookup("_id").AsInt64()), seen)
		seen++
	}
	equal(seen, 5000)
	cursor, err = many.Aggregate(a, bson.A{bson.M{"$group": bson.M{"_id": "$group", "n": bson.M{"$sum": 1}}}})
	must(err)
	var groups []bson.M
	must(cursor.All(a, &groups))
	equal(len(groups), 10)
}

func (a application) transactions() {
	accounts := a.db.Collection("accounts")
	_, err := accounts.InsertMany(a, []any{account{"a", 10}, account{"b", 0}})
	must(err)
	changedMyMind := errors.New("changed my mind")
	move := func(n int, result error) error {
		session, err := a.client.StartSession()
		must(err)
		defer session.EndSession(a)
		_, err = session.WithTransaction(a, func(c context.Context) (any, error) {
			if _, err := accounts.UpdateOne(c, bson.M{"_id": "a"}, bson.M{"$inc": bson.M{"sum": -n}}); err != nil {
				return nil, err
			}
			if _, err := accounts.UpdateOne(c, bson.M{"_id": "b"}, bson.M{"$inc": bson.M{"sum": n}}); err != nil {
				return nil, err
			}
			return nil, result
		})
		return err
	}
	must(move(4, nil))
	equal(move(5, changedMyMind), changedMyMind)
	cursor, err := accounts.Find(a, bson.M{}, options.Find().SetSort(bson.M{"_id": 1}))
	must(err)
	var sums []account
	must(cursor.All(a, &sums))
	equal(sums, []account{{"a", 6}, {"b", 4}})
}

func (a application) changeStreams() {
	watched := a.db.Collection("watched")
	_, err := watched.InsertOne(a, bson.M{"_id": 0})
	must(err)
	stream, err := watched.Watch(a, mongo.Pipeline{})
	must(err)
	_, err = watched.InsertOne(a, bson.M{"_id": 1})
	must(err)
	_, err = watched.DeleteOne(a, bson.M{"_id": 1})
	must(err)
	equal(stream.Next(a), true)
	equal(stream.Current.Lookup("operationType").StringValue(), "insert")
	token := stream.ResumeToken()
	must(stream.Close(a))
	stream, err = watched.Watch(a, mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(token))
	must(err)
	equal(stream.Next(a), true)
	equal(stream.Current.Lookup("operationType").StringValue(), "delete")
	must(stream.Close(a))
}

func (a application) files() {
	bucket := a.db.GridFSBucket(options.GridFSBucket().SetChunkSizeBytes(1024))
	content := bytes.Repeat([]byte("abc"), 3333)
	_, err := bucket.UploadFromStream(a, "f", bytes.NewReader(content))
	must(err)
	stream, err := bucket.OpenDownloadStreamByName(a, "f")
	must(err)
	back, err := io.ReadAll(stream)
	must(err)
	equal(bytes.Equal(back, content), true)
}

func (a application) retries() {
	if os.Getenv("TESSERA_FAIL_POINTS") == "" {
		return
	}
	retried := a.db.Collection("retried")
	fail := func(data bson.M) {
		command := bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: bson.M{"times": 1}}, {Key: "data", Value: data}}
		must(a.client.Database("admin").RunCommand(a, command).Err())
	}
	_, err := retried.InsertOne(a, bson.M{"_id": 0})
	must(err)
	fail(bson.M{"failCommands": bson.A{"insert"}, "closeConnection": true})
	_, err = retried.InsertOne(a, bson.M{"_id": 1})
	must(err)
	fail(bson.M{"failCommands": bson.A{"update"}, "errorCode": 262, "errorLabels": bson.A{"RetryableWriteError"}})
	_, err = retried.UpdateOne(a, bson.M{"_id": 1}, bson.M{"$inc": bson.M{"n": 1}})
	must(err)
	fail(bson.M{"failCommands": bson.A{"find"}, "closeConnection": true})
	var found bson.M
	must(retried.FindOne(a, bson.M{"_id": 1}).Decode(&found))
	equal(found["n"], int32(1))
}

// passes runs a check and says how it ended.
func passes(name string, check func()) (passed bool) {
	defer func() {
		if failure := recover(); failure != nil {
			fmt.Printf("FAILED %s: %v\n", name, failure)
		}
	}()
	check()
	fmt.Println("ok", name)
	return true
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	client, err := mongo.Connect(options.Client().ApplyURI(os.Getenv("TESSERA_URI")))
	must(err)
	a := application{ctx, client, client.Database("clients_go")}
	must(a.db.Drop(ctx))
	passed, failed := 0, 0
	for _, check := range []struct {
		name string
		run  func()
	}{
		{"documents are written, read, changed and removed", a.documents},
		{"a unique index refuses a second one", a.uniqueIndex},
		{"writes go in bulk", a.bulk},
		{"a long result comes in batches and through a pipeline", a.batches},
		{"a transaction happens as a whole or not at all", a.transactions},
		{"a change stream goes on from a token", a.changeStreams},
		{"a file is kept in chunks", a.files},
		{"a write whose connection breaks is done once", a.retries},
	} {
		if passes(check.name, check.run) {
			passed++
		} else {
			failed++
		}
	}
	must(a.db.Drop(ctx))
	must(client.Disconnect(ctx))
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
